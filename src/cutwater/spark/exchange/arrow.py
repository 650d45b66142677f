"""Records as Arrow columns: maps annotations to Arrow types, and converts both ways."""

from __future__ import annotations

import datetime as dt
import enum
import types
import uuid
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import Any, get_args, get_origin

import msgspec
import numpy as np
import pyarrow as pa

from cutwater.annotations import fields_of, members, plain_type, typename
from cutwater.errors import InputError, Problem, RefusedError
from cutwater.spark.exchange.columns import DictionaryEncoding, Records, objects
from cutwater.vectors import Layout
from cutwater.vectors.layouts import Columns

__all__ = [
    "arrays_of",
    "arrow_schema",
    "arrow_type",
    "in_utc",
    "is_misfit",
    "numbering_of",
    "records_in",
]

_SIMPLE: dict[Any, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    str: pa.string(),
    bytes: pa.binary(),
    dt.datetime: pa.timestamp("us", tz="UTC"),
    dt.date: pa.date32(),
    dt.time: pa.time64("ns"),
    dt.timedelta: pa.duration("us"),
    Decimal: pa.decimal128(38, 18),
    uuid.UUID: pa.string(),
}
_NUMBERS = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
_KEPT = (bytes, dt.datetime, dt.date, dt.time, dt.timedelta, Decimal)
"""Types whose values Arrow accepts as they are."""
_COLLECTIONS = (list, set, frozenset)


def arrow_type(tp: Any, inside: tuple[Any, ...] = ()) -> pa.DataType | None:
    """The Arrow type of an annotation; None if there is none, as for a recursive record.

    `inside` are the records in which it is nested. A datetime without a zone is assumed to be UTC.

    >>> arrow_type(list[int]), arrow_type(str | None), arrow_type(int | str)
    (ListType(list<item: int64>), DataType(string), None)
    """
    alternatives = [member for member in members(plain_type(tp)) if member is not types.NoneType]
    if len(alternatives) != 1:
        return None
    tp = plain_type(alternatives[0])
    origin, args = get_origin(tp), get_args(tp)
    if tp in _SIMPLE:
        return _SIMPLE[tp]
    if isinstance(tp, type) and issubclass(tp, enum.Enum):
        kinds = {type(member.value) for member in tp}
        return _SIMPLE.get(kinds.pop()) if len(kinds) == 1 else None
    if origin in _COLLECTIONS or (origin is tuple and args[1:] == (...,)):
        item = arrow_type(args[0], inside)
        return pa.list_(item) if item else None
    if origin is dict:
        key, value = (arrow_type(arg, inside) for arg in args)
        return pa.map_(key, value) if key and value else None
    return None if tp in inside else _struct(fields_of(tp) or {}, (*inside, tp))


def _struct(fields: dict[str, Any], inside: tuple[Any, ...]) -> pa.DataType | None:
    found = {name: arrow_type(tp, inside) for name, tp in fields.items()}
    if not found or None in found.values():
        return None
    return pa.struct([pa.field(name, tp) for name, tp in found.items()])


def arrow_schema(layout: Layout, what: str) -> pa.Schema:
    """The schema of a type; a type without fields is one column named ``value``.

    Raises `RefusedError` if a field has no Arrow type; `what` names the carrier in its message.
    """
    found = {name or "value": arrow_type(tp) for name, tp in layout.declared.items()}
    for name, tp in layout.declared.items():
        if found[name or "value"] is None:
            raise RefusedError(
                Problem(
                    "no-column-type",
                    f"{what} carries {typename(layout.type)}, and {typename(tp)} has no column "
                    "type",
                    "map it to a dataclass of numbers, text, times, and lists and dataclasses of "
                    "these",
                )
            )
    return pa.schema(list(found.items()))


def arrays_of(layout: Layout, columns: Columns, schema: pa.Schema) -> list[pa.Array]:
    """Columns as Arrow arrays."""
    pairs = zip(layout.columns.items(), schema.types, strict=True)
    return [_array(columns[name], kind, tp) for (name, kind), tp in pairs]


def _array(column: np.ndarray, kind: str, tp: pa.DataType) -> pa.Array:
    if kind != "object":
        return pa.array(column, tp)
    values = column.tolist()
    if not pa.types.is_string(tp) or {*map(type, values)} - {str, types.NoneType}:
        values = msgspec.to_builtins(values, builtin_types=_KEPT)
    return pa.array(values, tp)


def is_misfit(found: pa.DataType, tp: Any) -> bool:
    """Are values of an Arrow type unfit for an annotation?

    >>> is_misfit(pa.int32(), int), is_misfit(pa.string(), int), is_misfit(pa.int64(), float)
    (False, True, False)
    """
    wanted = arrow_type(tp)
    return wanted is None or not _fits(found, wanted)


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    is_ = pa.types
    if is_.is_struct(wanted):
        names = {found.field(i).name for i in range(found.num_fields)}
        return is_.is_struct(found) and all(
            field.name in names and _fits(found.field(field.name).type, field.type)
            for field in wanted
        )
    if is_.is_map(wanted):
        return is_.is_map(found) and all(
            _fits(*pair)
            for pair in ((found.key_type, wanted.key_type), (found.item_type, wanted.item_type))
        )
    if is_.is_list(wanted):
        return is_.is_list(found) and _fits(found.value_type, wanted.value_type)
    for test, takes in (
        (is_.is_integer, is_.is_integer),
        (is_.is_floating, lambda tp: is_.is_floating(tp) or is_.is_integer(tp)),
        (is_.is_decimal, is_.is_decimal),
        (is_.is_timestamp, is_.is_timestamp),
        (is_.is_time, is_.is_time),
        (is_.is_string, lambda tp: is_.is_string(tp) or is_.is_large_string(tp)),
        (is_.is_binary, lambda tp: is_.is_binary(tp) or is_.is_large_binary(tp)),
    ):
        if test(wanted):
            return bool(takes(found))
    return bool(found == wanted)


def records_in(
    layout: Layout, arrays: Sequence[pa.Array], what: str, numbered: Collection[str] = ()
) -> Records:
    """Arrow columns as records; raises `InputError` for a null in a field that does not allow it.

    Also for a value that does not fit its annotation. The fields `numbered`, which are text or
    integers, are dictionary-encoded.
    """
    columns: Columns = {}
    numberings: dict[str, DictionaryEncoding] = {}
    for (name, kind), array in zip(layout.columns.items(), arrays, strict=True):
        declared = layout.declared[name]
        if array.null_count and types.NoneType not in members(plain_type(declared)):
            raise InputError(
                Problem(
                    "null-in-a-field",
                    f"{what} has a row without '{name or 'value'}', which is declared "
                    f"{typename(declared)}",
                    f"declare it {typename(declared)} | None, or filter such rows out before",
                )
            )
        try:
            if name in numbered:
                numberings[name] = numbering_of(array)
            if name in numbered and kind == "object":
                values = msgspec.convert(numberings[name].values, list[declared])  # type: ignore[valid-type]
                columns[name] = objects(values)[numberings[name].of]
            else:
                columns[name] = _column(array, kind, declared)
        except msgspec.ValidationError as error:
            raise InputError(
                Problem(
                    "bad-record",
                    f"column '{name or 'value'}' of {what} has a row that does not "
                    f"fit {typename(declared)}: {error}",
                    "correct the annotation, or filter such rows out before",
                )
            ) from None
    return Records(layout, columns, numberings)


def numbering_of(array: pa.Array) -> DictionaryEncoding:
    """The dictionary encoding of an Arrow column without nulls.

    >>> numbering_of(pa.array(["b", "a", "b"]))
    DictionaryEncoding(values=['b', 'a'], of=array([0, 1, 0]))
    """
    is_encoded = pa.types.is_dictionary(array.type)
    encoded = array if is_encoded else array.dictionary_encode()
    of, values = encoded.indices.to_numpy().astype(np.intp), encoded.dictionary
    if is_encoded:  # by a file, whose dictionary also has values of other rows
        used, of = _used(of, len(values))
        values = values.take(pa.array(used))
    return DictionaryEncoding(values.to_numpy(zero_copy_only=False).tolist(), of)


def _used(numbers: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers below `size` that occur, and the index of each given one among these."""
    if len(numbers) < size:
        return np.unique(numbers, return_inverse=True)
    is_used = np.bincount(numbers, minlength=size) > 0
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[numbers]


def _column(array: pa.Array, kind: str, declared: Any) -> np.ndarray:
    if kind != "object":
        numbers: np.ndarray = array.cast(_NUMBERS[kind]).to_numpy(zero_copy_only=False)
        return numbers
    if plain_type(declared) is str:
        text: np.ndarray = array.to_numpy(zero_copy_only=False)
        return text
    values = in_utc(array).to_pylist(maps_as_pydicts="strict")
    return objects(msgspec.convert(values, list[declared]))


def in_utc(array: pa.Array) -> pa.Array:
    """The same instants in UTC: the time zone of a Spark session is not part of a value.

    >>> berlin = pa.array([0], pa.timestamp("us", "Europe/Berlin"))
    >>> in_utc(berlin).to_pylist()[0].isoformat()
    '1970-01-01T00:00:00+00:00'
    """
    wanted = _type_in_utc(array.type)
    return array if wanted == array.type else array.cast(wanted)


def _type_in_utc(tp: pa.DataType) -> pa.DataType:
    is_ = pa.types
    if is_.is_timestamp(tp) and tp.tz:
        return pa.timestamp(tp.unit, "UTC")
    if is_.is_struct(tp):
        return pa.struct([_field_in_utc(tp.field(i)) for i in range(tp.num_fields)])
    if is_.is_map(tp):
        return pa.map_(_field_in_utc(tp.key_field), _field_in_utc(tp.item_field))
    return pa.list_(_field_in_utc(tp.value_field)) if is_.is_list(tp) else tp


def _field_in_utc(field: pa.Field) -> pa.Field:
    return field.with_type(_type_in_utc(field.type))
