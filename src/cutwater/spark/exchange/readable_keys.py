"""Decodes keys for people, from the canonical bytes under which states are stored."""

from __future__ import annotations

import datetime as dt
import uuid
from fractions import Fraction
from typing import Any

__all__ = ["key_of"]

_EPOCH = dt.datetime(1970, 1, 1)


def key_of(data: bytes) -> Any:
    """The key with these canonical bytes; for enums and records, the name and the values.

    Raises `ValueError` if they are not the bytes of a key.

    >>> from cutwater.ordering import canonical
    >>> key_of(canonical(("ada", -300, 1.5, None)))
    ('ada', -300, 1.5, None)
    """
    if not data:
        return None
    tag, body = data[0], data[1:]
    match tag:
        case 0x01:
            return None
        case 0x02 | 0x04 | 0x05:
            return {0x02: float("-inf"), 0x04: float("inf"), 0x05: float("nan")}[tag]
        case 0x03:
            return _number(body)
        case 0x10:
            return body.decode("utf-8", "surrogatepass")
        case 0x11:
            return body
        case 0x20 | 0x21:
            moment = _EPOCH + dt.timedelta(microseconds=_integer(body)[0])
            return moment.replace(tzinfo=dt.UTC) if tag == 0x20 else moment
        case 0x22:
            return dt.date.fromordinal(_integer(body)[0])
        case 0x23:
            return dt.timedelta(microseconds=_integer(body)[0])
        case 0x30:
            return uuid.UUID(bytes=body)
        case 0x31 | 0x40 | 0x41 | 0x42:
            return tuple(map(key_of, _items(body)))
    raise ValueError(f"{data.hex()} are not the bytes of a key")


def _number(body: bytes) -> int | float:
    whole, rest = _integer(body)
    if not rest:
        return whole
    numerator, denominator = rest.decode().split("/")
    return float(Fraction(int(numerator, 16), int(denominator, 16)))


def _integer(body: bytes) -> tuple[int, bytes]:
    """An integer, and the bytes that follow it."""
    is_negative = body[0] != 0x81
    flipped = bytes(255 - byte for byte in body) if is_negative else body
    size, start = flipped[1], 2
    if size == 255:
        size, start = int.from_bytes(flipped[2:10], "big"), 10
    magnitude = int.from_bytes(flipped[start : start + size], "big")
    return (~magnitude if is_negative else magnitude), body[start + size :]


def _items(body: bytes) -> list[bytes]:
    """Splits at terminators, and unescapes each item."""
    found, item, at = [], bytearray(), 0
    while at < len(body):
        if body[at] != 0:
            item.append(body[at])
            at += 1
        else:
            if body[at + 1] == 0xFF:
                item.append(0)
            else:
                found.append(bytes(item))
                item = bytearray()
            at += 2
    return found
