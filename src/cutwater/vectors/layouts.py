"""Records as columns: conversion between many values of one type and arrays."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from operator import attrgetter
from typing import Any, get_origin

import msgspec

from cutwater.annotations import fields_of, fits, members, plain_type, typename
from cutwater.errors import FlowError, InputError, Problem, many
from cutwater.vectors.arrays import Array, np

__all__ = ["Columns", "Layout"]

Columns = dict[str, Array]
"""An array for each field, all of one length; for a type that is not a record, one named ""."""

_KINDS = {int: "int", float: "float", bool: "bool"}
_DTYPES = {"int": "int64", "float": "float64", "bool": "bool", "object": "object"}
_TAKES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "bool": (bool,)}
"""The Python types that a column of numbers accepts."""
_SAFE = {"int": "iub", "float": "fiub", "bool": "b"}
"""The numpy dtype kinds that a column of numbers accepts."""
_VALUES = {"i": int, "u": int, "f": float, "b": bool, "U": str, "S": bytes, "c": complex}


@dataclass(frozen=True)
class Layout:
    """The columns that hold values of a type.

    Examples
    --------
    >>> Layout.of(float).columns, Layout.of(str).columns
    ({'': 'float'}, {'': 'object'})
    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: int
    ...     name: str
    >>> layout = Layout.of(Point)
    >>> layout.columns
    {'x': 'int', 'name': 'object'}
    >>> columns = layout.of_values([Point(1, "a"), Point(2, "b")])
    >>> layout.record(columns).x.tolist(), layout.to_values(columns)[1]
    ([1, 2], Point(x=2, name='b'))
    """

    type: Any
    columns: dict[str, str]
    """``"int"``, ``"float"``, ``"bool"`` or ``"object"``, by field."""
    declared: dict[str, Any]
    """The annotated type, by field."""

    @staticmethod
    def of(tp: Any) -> Layout:
        """The layout of a type: one column per field of a record, else a single column."""
        is_one = len(members(plain_type(tp))) == 1
        declared = (fields_of(tp) if is_one else None) or {"": tp}
        layout = Layout(tp, {name: _kind_of(field) for name, field in declared.items()}, declared)
        if layout.is_record and issubclass(layout._class, msgspec.Struct):
            _check_struct(layout._class)
        return layout

    @property
    def is_record(self) -> bool:
        """Is there a column for each field?"""
        return "" not in self.columns

    def record(self, columns: Mapping[str, Any]) -> Any:
        """A record whose fields are arrays, or the single array; runs no dataclass ``__init__``."""
        if not self.is_record:
            return columns[""]
        cls = self._class
        if issubclass(cls, msgspec.Struct):
            return cls(**columns)
        if issubclass(cls, tuple):
            return tuple.__new__(cls, (columns[name] for name in self.columns))
        made = object.__new__(cls)
        for name in self.columns:
            object.__setattr__(made, name, columns[name])
        return made

    def split(self, record: Any, length: int, what: str) -> Columns:
        """The columns of the record of arrays a function returned; `InputError` if it is not one.

        `what` names it in messages: ``the state that 'mean' returned``. A scalar is broadcast.
        """
        if not self.is_record:
            return {"": self._column("", record, length, what)}
        if not isinstance(record, self._class):
            raise _not_the_record(what, record, self.type)
        return {
            name: self._column(name, getattr(record, name), length, what) for name in self.columns
        }

    def of_values(self, values: Sequence[Any], what: str = "") -> Columns:
        """The columns of many values; `InputError`, beginning with `what`, for a wrong type."""
        if not self.is_record:
            return {"": self._from_values("", values, f"{what}a value is")}
        return {name: self.column(name, values, what) for name in self.columns}

    def column(self, name: str, values: Sequence[Any], what: str = "") -> Array:
        """The column of one field of many values."""
        subject = f"{what}{typename(self.type)}.{name} is"
        return self._from_values(name, self._read(name, values, what), subject)

    def to_values(self, columns: Mapping[str, Array]) -> list[Any]:
        """The values in columns, with Python's own numbers."""
        if not self.is_record:
            return list(columns[""].tolist())
        return list(self._make([columns[name].tolist() for name in self.columns]))

    @cached_property
    def _class(self) -> Any:
        tp = plain_type(self.type)
        return get_origin(tp) or tp

    def _make(self, lists: Sequence[list[Any]]) -> Iterable[Any]:
        if self._is_plain:
            return map(self._class, *lists)
        rows = zip(*lists, strict=True)
        return (self.record(dict(zip(self.columns, row, strict=True))) for row in rows)

    @cached_property
    def _is_plain(self) -> bool:
        """Does the constructor take exactly the fields, with no ``__post_init__``?"""
        try:
            parameters = list(inspect.signature(self._class).parameters.values())
        except (TypeError, ValueError):
            return False
        is_positional = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        takes_fields = [p.name for p in parameters] == list(self.columns)
        return is_positional and takes_fields and not hasattr(self._class, "__post_init__")

    def _read(self, name: str, values: Sequence[Any], what: str) -> list[Any]:
        try:
            return list(map(attrgetter(name), values))
        except AttributeError:
            other = next(value for value in values if not hasattr(value, name))
            raise InputError(
                Problem(
                    "vector-value",
                    f"{what}{other!r} is no {typename(self.type)}; a vectorised task takes what "
                    "its annotations say",
                    "widen the annotation, or map the stream to that type",
                )
            ) from None

    def _from_values(self, name: str, values: Sequence[Any], subject: str) -> Array:
        kind = self.columns[name]
        if kind == "object":
            return np.fromiter(values, dtype=object, count=len(values))
        for tp in set(map(type, values)):
            if not issubclass(tp, _TAKES[kind]) and not issubclass(tp, _numpy_types(kind)):
                wrong = next(value for value in values if type(value) is tp)
                raise InputError(_not_declared(subject, wrong, kind))
        try:
            return np.array(values, dtype=_DTYPES[kind])
        except OverflowError:
            wrong = next(value for value in values if not -(2**63) <= value < 2**63)
            raise InputError(_too_large(subject, wrong, kind)) from None

    def _column(self, name: str, value: Any, length: int, what: str) -> Array:
        subject = f"{what} has in '{name}'" if name else f"{what} has"
        kind = self.columns[name]
        array = _as_array(value, kind, length, subject)
        if kind == "object":
            return self._objects(name, array, subject)
        if array.dtype.kind == "O":
            return self._from_values(name, array.tolist(), subject)
        if array.dtype.kind not in _SAFE[kind]:
            raise InputError(_wrong_kind(subject, array, kind))
        if array.dtype == np.uint64 and kind == "int" and len(array) and array.max() >= 2**63:
            raise InputError(_too_large(subject, int(array.max()), kind))
        return array.astype(_DTYPES[kind], copy=False)

    def _objects(self, name: str, array: Array, subject: str) -> Array:
        made_of = _VALUES.get(array.dtype.kind)
        if made_of is not None and not fits(made_of, self.declared[name]):
            raise InputError(_wrong_kind(subject, array, typename(self.declared[name])))
        if array.dtype.kind in "mM":  # numpy turns nanoseconds into ints
            unit = np.datetime_data(array.dtype)[0]
            array = array.astype(f"{array.dtype.kind}8[us]") if unit in ("ns", "ps") else array
        array = array.astype(object, copy=False)
        if any(issubclass(tp, np.generic) for tp in set(map(type, array.tolist()))):
            plain = [value.item() if isinstance(value, np.generic) else value for value in array]
            return np.fromiter(plain, dtype=object, count=len(plain))
        return array


def _kind_of(tp: Any) -> str:
    tp = plain_type(tp)
    return _KINDS.get(tp, "object") if isinstance(tp, type) else "object"


def _numpy_types(kind: str) -> tuple[type, ...]:
    return {
        "int": (np.integer,),
        "float": (np.floating, np.integer),
        "bool": (np.bool_,),
    }[kind]


def _as_array(value: Any, kind: str, length: int, subject: str) -> Array:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)):
        value = list(repeat(value, length))
    if isinstance(value, list):
        is_object = kind == "object" or not all(isinstance(v, (int, float)) for v in value)
        value = np.fromiter(value, dtype=object, count=len(value)) if is_object else value
    elif not hasattr(value, "__array__"):
        raise InputError(_no_array(subject, value))
    array = np.asarray(value) if len(value) else np.empty(0, _DTYPES[kind])
    if array.shape == (length,):
        return array
    shape = many(len(array), "element") if array.ndim == 1 else f"the shape {array.shape}"
    raise InputError(
        Problem(
            "vector-length",
            f"{subject} {shape}, not {length}",
            "a state has one element for each key; outputs one for each event, or for each row "
            "of an Emit",
        )
    )


def _not_the_record(what: str, record: Any, tp: Any) -> InputError:
    is_array = hasattr(record, "__array__")
    got = "an array" if is_array else "None" if record is None else f"a {type(record).__name__}"
    return InputError(
        Problem(
            "vector-type",
            f"{what} is {got}; by its annotations it is a {typename(tp)} of arrays",
            f"return {typename(tp)}(...) with an array for each field, or change the annotation",
        )
    )


def _no_array(subject: str, value: Any) -> Problem:
    return Problem(
        "vector-type",
        f"{subject} a {type(value).__name__} where an array belongs",
        "return arrays; if it returns a record of arrays, annotate it: tuple[State, Output]",
    )


def _wrong_kind(subject: str, array: Array, declared: str) -> Problem:
    way = {
        "int": "round them first: np.floor(values).astype(int); or declare the field float",
        "bool": "compare: values != 0",
    }
    return Problem(
        "vector-type",
        f"{subject} an array of {array.dtype}; it is declared {declared}",
        way.get(declared, "convert them, or change the annotation"),
    )


def _not_declared(subject: str, value: Any, kind: str) -> Problem:
    return Problem(
        "vector-value",
        f"{subject} {value!r}; it is declared {kind}",
        f"give it such a value, or declare it {kind} | {typename(type(value))}, which makes it "
        "an array of objects",
    )


def _too_large(subject: str, value: Any, kind: str) -> Problem:
    return Problem(
        "vector-value",
        f"{subject} {value!r}; a column of {kind} has 64 bits for each",
        "use a task that is not vectorised where numbers are larger",
    )


def _check_struct(cls: Any) -> None:
    if hasattr(cls, "__post_init__"):
        raise FlowError(
            Problem(
                "vector-record",
                f"{typename(cls)} has __post_init__, which would receive arrays; a vectorised "
                "task takes structs without",
                "use a dataclass, whose __post_init__ is left out, or leave it out yourself",
            )
        )
