"""Maps fields to columns, and encodes values as PostgreSQL parses them.

A *kind* is what an annotation reduces to: ``int``, ``str`` and so on, and ``json`` for composite
types. Values become elements of an array literal, which the column's own type parses: nothing is
converted on the way, and no value is rounded that the column can hold.
"""

from __future__ import annotations

import datetime as dt
import enum
import json
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from cutwater.annotations import fields_of, members, plain_type
from cutwater.spark.connectors.postgres.tables import TableColumn

__all__ = ["VALUE", "Field", "Unwritable", "array_literal", "fields_of_record", "holds"]

VALUE = "value"
"""The column of records that have no fields: numbers, text."""


class Unwritable(ValueError):
    """One of several values cannot be written; `index` says which, the text why."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(why)
        self.index = index


@dataclass(frozen=True)
class Field:
    """A field of a record: its name, its kind, and whether it may be None."""

    name: str
    kind: str
    is_optional: bool

    @property
    def column(self) -> str:
        """The name of its column."""
        return self.name or VALUE

    @property
    def sql_type(self) -> str:
        """The type of the column that is created for it."""
        return _MADE[self.kind]


_KINDS: dict[type, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    bytes: "bytes",
    dt.datetime: "datetime",
    dt.date: "date",
    dt.time: "time",
    dt.timedelta: "timedelta",
    Decimal: "decimal",
    uuid.UUID: "uuid",
}
_MADE = {
    "bool": "boolean",
    "int": "bigint",
    "float": "double precision",
    "str": "text",
    "bytes": "bytea",
    "datetime": "timestamp with time zone",
    "date": "date",
    "time": "time",
    "timedelta": "interval",
    "decimal": "numeric",
    "uuid": "uuid",
    "json": "jsonb",
}
_HELD = {
    "bool": ("bool",),
    "int": ("int2", "int4", "int8", "numeric"),
    "float": ("float4", "float8", "numeric"),
    "str": ("text", "varchar", "bpchar", "citext"),
    "bytes": ("bytea",),
    "datetime": ("timestamptz", "timestamp"),
    "date": ("date",),
    "time": ("time",),
    "timedelta": ("interval",),
    "decimal": ("numeric",),
    "uuid": ("uuid",),
    "json": (),
}
_JSON = ("json", "jsonb")


def fields_of_record(record: Any) -> list[Field] | None:
    """The fields of a record type, or one field for a plain value; None if the type is unknown."""
    plain = plain_type(record)
    declared = fields_of(record) if len(members(plain)) == 1 else {}
    if declared is None:
        return None
    return [Field(n, *_kind(tp)) for n, tp in declared.items()] or [Field("", *_kind(record))]


def _kind(tp: Any) -> tuple[str, bool]:
    """The kind of a type, and whether it includes None."""
    found = [plain_type(member) for member in members(plain_type(tp))]
    is_optional = type(None) in found or Any in found
    kinds = {_kind_of_one(member) for member in found if member is not type(None)}
    if kinds == {"int", "float"}:
        return "float", is_optional
    return (kinds.pop() if len(kinds) == 1 else "json"), is_optional


def _kind_of_one(tp: Any) -> str:
    if not isinstance(tp, type):
        return "json"
    if issubclass(tp, enum.Enum):
        kinds = {_KINDS.get(type(member.value), "json") for member in tp}
        return kinds.pop() if kinds in ({"str"}, {"int"}) else "json"
    if issubclass(tp, dt.datetime):  # a subclass of date
        return "datetime"
    return next((kind for known, kind in _KINDS.items() if issubclass(tp, known)), "json")


def holds(column: TableColumn, field: Field) -> bool:
    """Can a column hold every value of a field, within the range of its type?"""
    if column.base in _JSON or column.base in _HELD[field.kind]:
        return True
    return column.is_enum and field.kind == "str"


def array_literal(field: Field, column: TableColumn, values: Sequence[Any]) -> str:
    """Values as an array literal; raises `Unwritable` for the first that cannot be written."""
    write = _writer(field.kind, column.base)
    try:
        literal = "{" + ",".join(["NULL" if v is None else write(v) for v in values]) + "}"
        literal.encode()
        if "\0" not in literal:
            return literal
    except (ValueError, TypeError, AttributeError):
        pass
    raise _first_unwritable(write, values)


def _first_unwritable(write: Callable[[Any], str], values: Sequence[Any]) -> Unwritable:
    for index, value in enumerate(values):
        try:
            text = "" if value is None else write(value)
            text.encode()
        except UnicodeEncodeError:
            return Unwritable(index, "its text has a lone surrogate, which is not a character")
        except (ValueError, TypeError, AttributeError) as error:
            return Unwritable(index, f"it is {_short(value)}: {error}")
        if "\0" in text:
            return Unwritable(index, "its text has a NUL character, which PostgreSQL cannot hold")
    raise AssertionError("one of the values is at fault")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _writer(kind: str, base: str) -> Callable[[Any], str]:
    """The function that encodes a value as an element of an array literal."""
    if base in _JSON:
        return _json
    if kind == "datetime":
        return _instant if base == "timestamptz" else _utc
    return _WRITERS[kind]


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _member(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _instant(value: dt.datetime) -> str:
    """For a column with time zone: a time without a zone is assumed to be UTC."""
    aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    return _quote(aware.isoformat())


def _utc(value: dt.datetime) -> str:
    """For a column without time zone: it holds UTC."""
    naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    return _quote(naive.isoformat())


def _interval(value: dt.timedelta) -> str:
    return f'"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"'


def _text(value: Any) -> str:
    return _quote(_member(value))


def _whole(value: Any) -> str:
    return str(int(_member(value)))


_WRITERS: dict[str, Callable[[Any], str]] = {
    "bool": lambda value: "t" if value else "f",
    "int": _whole,
    "float": lambda value: repr(value) if type(value) is float else str(value),
    "str": _text,
    "bytes": lambda value: f'"\\\\x{value.hex()}"',
    "date": lambda value: _quote(value.isoformat()),
    "time": lambda value: _quote(value.isoformat()),
    "timedelta": _interval,
    "decimal": str,
    "uuid": str,
}

_NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def _json(value: Any) -> str:
    try:
        plain = msgspec.to_builtins(value, str_keys=True)
        text = json.dumps(plain, allow_nan=False, ensure_ascii=False)
    except RecursionError:
        raise ValueError("it is nested too deeply for JSON") from None
    except ValueError:
        raise ValueError("JSON has no NaN and no Infinity") from None
    if _NUL_IN_JSON.search(text):
        return "\0"
    return _quote(text)
