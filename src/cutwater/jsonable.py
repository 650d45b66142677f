"""Any value as plain data, which survives a round trip through JSON unchanged.

Traces and reports hold plain data. A value JSON has no type for becomes an object with one key
that begins with ``$``; a record becomes an object whose first key, ``$``, names its type.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import math
import re
from collections import deque
from decimal import Decimal
from typing import Any

import msgspec

__all__ = ["JsonValue", "plain", "shown"]

JsonValue = Any
"""None, bool, int, float, str, or a list or dict of these."""

_RECORD = "$"
_LARGEST = 2**63


def plain(value: Any) -> JsonValue:
    """A value as plain data; equal results for equal values of one type.

    >>> plain((1, "a")), plain({1: 2.5})
    ({'$tuple': [1, 'a']}, {'$dict': [[1, 2.5]]})
    """
    match value:
        case None | bool():
            return value
        case enum.Enum():
            return {"$enum": f"{type(value).__name__}.{value.name}"}
        case int():
            return int(value) if -_LARGEST <= value < _LARGEST else {"$int": str(int(value))}
        case float():
            return float(value) if math.isfinite(value) else {"$float": str(float(value))}
        case str():
            return _text(value)
        case list():
            return [plain(item) for item in value]
        case dict():
            return _dict(value)
        case msgspec.Struct():
            return _record(value, value.__struct_fields__)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _record(value, [field.name for field in dataclasses.fields(value)])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _record(value, value._fields)
    return _tagged(value)


def _text(value: str) -> JsonValue:
    try:
        value.encode()
    except UnicodeEncodeError:  # lone surrogates
        return {"$text": value.encode("unicode_escape").decode()}
    return str(value)


def _record(value: Any, names: Any) -> JsonValue:
    return {_RECORD: type(value).__name__, **{n: plain(getattr(value, n)) for n in names}}


def _dict(value: dict[Any, Any]) -> JsonValue:
    if all(type(key) is str and not key.startswith("$") and _text(key) == key for key in value):
        return {key: plain(item) for key, item in value.items()}
    pairs = [[plain(key), plain(item)] for key, item in value.items()]
    return {"$dict": sorted(pairs, key=_sort_key)}


def _tagged(value: Any) -> JsonValue:
    match value:
        case tuple():
            return {"$tuple": [plain(item) for item in value]}
        case set() | frozenset():
            return {"$set": sorted((plain(item) for item in value), key=_sort_key)}
        case bytes() | bytearray():
            return {"$bytes": value.hex()}
        case Decimal():
            return {"$decimal": str(value)}
        case dt.datetime():
            return {"$datetime": value.isoformat()}
        case dt.date():
            return {"$date": value.isoformat()}
        case dt.timedelta():
            return {"$seconds": value.total_seconds()}
        case deque():
            return {"$deque": [plain(item) for item in value]}
    text = _ADDRESS.sub("", repr(value))
    if text != repr(value) and getattr(value, "__dict__", None):  # a repr without content
        return {_RECORD: type(value).__name__, **{n: plain(v) for n, v in vars(value).items()}}
    return {"$repr": text}


_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""The address in a repr, which differs in every run."""


def _sort_key(value: JsonValue) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def shown(value: JsonValue) -> str:
    """Plain data for people, on one line.

    >>> shown(plain((1, "a"))), shown({"$": "Mean", "of": 2.5}), shown([{"$decimal": "1.5"}])
    ("(1, 'a')", 'Mean(of=2.5)', '[1.5]')
    """
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if not isinstance(value, dict):
        return repr(value)
    if _RECORD in value:
        fields = (f"{name}={shown(item)}" for name, item in value.items() if name != _RECORD)
        return f"{value[_RECORD]}({', '.join(fields)})"
    if len(value) == 1:
        ((tag, item),) = value.items()
        if tag.startswith("$"):
            return _shown_tagged(tag, item)
    return "{" + ", ".join(f"{key!r}: {shown(item)}" for key, item in value.items()) + "}"


def _shown_tagged(tag: str, item: JsonValue) -> str:
    if tag == "$tuple":
        inside = ", ".join(map(shown, item))
        return f"({inside},)" if len(item) == 1 else f"({inside})"
    if tag == "$deque":
        return f"deque([{', '.join(map(shown, item))}])"
    if tag == "$set":
        return "{" + ", ".join(map(shown, item)) + "}"
    if tag == "$dict":
        return "{" + ", ".join(f"{shown(key)}: {shown(value)}" for key, value in item) + "}"
    return f"{item} s" if tag == "$seconds" else str(item)
