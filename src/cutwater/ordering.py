"""The total order of a run: canonical bytes of keys, buckets, and order keys.

An input has the order ``(source rank, partition, position)`` within its epoch; an output appends
``(canonical key bytes, step rank, index)`` to the order of the event that caused it. Where a step
reads a stream twice, it processes the copies of an event input by input, and the index of their
outputs keeps counting. In memory an order is a flat tuple; between processes it is bytes with the
same sort order (`order_bytes`).
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import math
import uuid
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import xxhash

from cutwater.errors import InputError, Problem

__all__ = [
    "AFTER_DATA",
    "NO_KEY",
    "bucket_of",
    "buckets_of",
    "canonical",
    "canonical_of",
    "order_bytes",
    "terminated",
]

AFTER_DATA = 1 << 40
"""A rank above all sources: that of the end of an epoch; the end of the input has one more."""
NO_KEY = b""
"""The canonical bytes of "no key", for streams that are not keyed."""

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


def canonical(value: Any) -> bytes:
    """Bytes that are equal if and only if the keys are, in every process and every version.

    Numbers that compare equal in Python are one key: ``1``, ``1.0``, ``True`` and ``Decimal(1)``.
    All NaNs are one key, and so are ``0.0`` and ``-0.0``. The bytes of integers, text and
    datetimes sort as the values do in Python. `InputError` for a value that cannot be a key.

    >>> canonical(1) == canonical(1.0) == canonical(True), canonical(0.0) == canonical(-0.0)
    (True, True)
    >>> canonical(9) < canonical(10), canonical("1") == canonical(1)
    (True, False)
    """
    kind = type(value)
    if kind is str:
        return b"\x10" + value.encode("utf-8", "surrogatepass")  # type: ignore[no-any-return]
    if kind is int:
        return b"\x03" + _integer(value)
    return _canonical_slow(value)


def canonical_of(keys: Sequence[Any]) -> list[bytes]:
    """The canonical bytes of each of many keys.

    >>> canonical_of(["a", "b"]) == [canonical("a"), canonical("b")]
    True
    """
    if set(map(type, keys)) == {str}:
        together = "\x10" + "\0\x10".join(keys)
        apart = together.encode("utf-8", "surrogatepass").split(b"\0")
        if len(apart) == len(keys):
            return apart
    return list(map(canonical, keys))


def _canonical_slow(value: Any) -> bytes:
    match value:
        case None:
            return b"\x01"
        case int() | float() | Decimal() | Fraction():
            return _number(value)
        case str():
            return canonical(str.__str__(value))
        case bytes():
            return b"\x11" + value
        case dt.datetime():
            return _datetime(value)
        case dt.date():
            return b"\x22" + _integer(value.toordinal())
        case dt.timedelta():
            return b"\x23" + _integer(value // _MICROSECOND)
        case dt.time() if value.tzinfo is None:
            return b"\x24" + _integer((dt.datetime.combine(_EPOCH, value) - _EPOCH) // _MICROSECOND)
        case uuid.UUID():
            return b"\x30" + value.bytes
        case enum.Enum():
            return b"\x31" + _sequence([type(value).__qualname__, value.name])
        case tuple():
            return b"\x40" + _sequence(value)
        case frozenset():
            return b"\x41" + b"".join(terminated(item) for item in sorted(map(canonical, value)))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        compared = (field for field in dataclasses.fields(value) if field.compare)
        values = [getattr(value, field.name) for field in compared]
        return b"\x42" + _sequence([type(value).__qualname__, *values])
    raise InputError(
        Problem(
            "not-a-key",
            f"{value!r} is a {type(value).__name__}; a key is None, a number, text, bytes, a "
            "date, time or datetime, a UUID, an enum, or a tuple, frozenset or dataclass of these",
            "key by a field of one of these types, or by a function that returns one",
        )
    )


def _number(value: int | float | Decimal | Fraction) -> bytes:
    if value != value:
        return b"\x05"
    # math.isinf would turn a large Decimal into an infinite float
    if value.is_infinite() if isinstance(value, Decimal) else value in (math.inf, -math.inf):
        return b"\x04" if value > 0 else b"\x02"
    numerator, denominator = value.as_integer_ratio()
    whole = _integer(numerator // denominator)
    if denominator == 1:
        return b"\x03" + whole
    return b"\x03" + whole + f"{numerator:x}/{denominator:x}".encode()


def _integer(value: int) -> bytes:
    """Big-endian after its length, negative numbers complemented: sorts as the number does."""
    magnitude = value if value >= 0 else ~value
    data = magnitude.to_bytes((magnitude.bit_length() + 7) // 8, "big")
    size = bytes([len(data)]) if len(data) < 255 else b"\xff" + len(data).to_bytes(8, "big")
    signed = b"\x81" + size + data
    return signed if value >= 0 else bytes(255 - byte for byte in signed)


def _datetime(value: dt.datetime) -> bytes:
    if value.tzinfo is None:
        return b"\x21" + _integer((value - _EPOCH) // _MICROSECOND)
    return b"\x20" + _integer((value - _EPOCH.replace(tzinfo=dt.UTC)) // _MICROSECOND)


def _sequence(values: Sequence[Any]) -> bytes:
    return b"".join(terminated(canonical(value)) for value in values)


def terminated(data: bytes) -> bytes:
    """The bytes, escaped, with a terminator that sorts before any continuation."""
    return data.replace(b"\x00", b"\x00\xff") + b"\x00\x00"


def bucket_of(key: bytes, buckets: int) -> int:
    """The bucket of a key's canonical bytes; the same in every process and every version.

    >>> [bucket_of(canonical(name), 16) for name in ("ada", "ben", "cy")]
    [11, 6, 8]
    """
    return xxhash.xxh64_intdigest(key) % buckets


def buckets_of(keys: Iterable[bytes], buckets: int) -> list[int]:
    """The bucket of each key.

    >>> buckets_of([canonical("ada"), canonical("ben")], 16)
    [11, 6]
    """
    digest = xxhash.xxh64_intdigest
    return [digest(key) % buckets for key in keys]


def order_bytes(order: Sequence[int | bytes]) -> bytes:
    """Bytes that sort as the tuple does: numbers take eight bytes, key bytes are terminated.

    >>> order_bytes((0, 1, 5)) < order_bytes((0, 1, 5, b"k", 2, 0)) < order_bytes((0, 1, 6))
    True
    """
    return b"".join(
        part.to_bytes(8, "big") if isinstance(part, int) else terminated(part) for part in order
    )
