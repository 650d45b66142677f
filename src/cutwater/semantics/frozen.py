"""Makes any value hashable and safe to keep: for states and events of users' own types."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import enum
import math
import pickle
from collections import deque
from collections.abc import Hashable, Sequence
from decimal import Decimal
from types import BuiltinFunctionType, FunctionType
from typing import Any, Generic, TypeVar

import msgspec

from cutwater.annotations import is_immutable
from cutwater.errors import InputError, Problem
from cutwater.operators.log import Log
from cutwater.operators.loop import LoopState

__all__ = ["Frozen", "hashable_form"]

T = TypeVar("T")


class Frozen(Generic[T]):
    """A value that is compared by content, and handed out as a copy if it is mutable.

    >>> Frozen([1, 2]) == Frozen([1, 2]), Frozen([1]) == Frozen((1,)), Frozen(1) == Frozen(True)
    (True, False, False)
    """

    __slots__ = ("_hash", "_is_immutable", "_value", "form")

    def __init__(self, value: T) -> None:
        self._value = value
        self.form = hashable_form(value)
        """The hashable form used for comparison."""
        self._hash = hash(self.form)
        self._is_immutable = is_immutable(value)

    def thaw(self) -> T:
        """The value; a copy unless it is immutable. Raises `InputError` if it cannot be copied."""
        return self._value if self._is_immutable else _copied(self._value)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Frozen) and self._hash == other._hash and self.form == other.form
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return repr(self._value)


def _copied(value: T) -> T:
    try:
        return copy.deepcopy(value)
    except (TypeError, AttributeError, pickle.PickleError, RecursionError) as error:
        raise InputError(_without_form(value, str(error))) from None


def hashable_form(value: Any) -> Hashable:
    """A hashable stand-in, equal exactly for values of one type with equal contents.

    Raises `InputError` for a value that contains itself or cannot be inspected.
    """
    try:
        return _form(value)
    except RecursionError:
        raise InputError(
            _without_form(value, "it contains itself, or is nested too deeply")
        ) from None


def _form(value: Any) -> Hashable:
    kind = type(value)
    if value is None or kind in (int, bool, str, bytes):
        return (kind, value)
    if kind is float:
        return (kind, str(value) if math.isnan(value) else (value, math.copysign(1, value)))
    if kind in (tuple, list):
        return (kind, tuple(map(_form, value)))
    if kind is dict:
        return (kind, frozenset((_form(key), _form(item)) for key, item in value.items()))
    if kind in (set, frozenset):
        return (kind, frozenset(map(_form, value)))
    if isinstance(value, enum.Enum):
        return (kind, value.name)
    if isinstance(value, (Decimal, dt.datetime, dt.time)):
        return (kind, repr(value))  # equal ones may differ in scale or zone, and a NaN equals none
    if isinstance(value, msgspec.Struct):
        return (kind, tuple(_form(getattr(value, name)) for name in value.__struct_fields__))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return (kind, tuple(_form(getattr(value, field.name)) for field in fields))
    return _form_of_object(value)


def _form_of_object(value: Any) -> Hashable:
    kind = type(value)
    if isinstance(value, LoopState):
        return (kind, _form(value.content))
    if isinstance(value, (Sequence, deque, Log)):
        return (kind, tuple(map(_form, value)))
    if isinstance(value, dict):
        return (kind, frozenset((_form(key), _form(item)) for key, item in value.items()))
    if isinstance(value, (set, frozenset)):
        return (kind, frozenset(map(_form, value)))
    if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        return (kind, id(value))
    if _is_compared_by_content(kind, value):
        return (kind, value)
    names = [name for c in kind.__mro__ for name in getattr(c, "__slots__", ())]
    held = {name: getattr(value, name) for name in names if hasattr(value, name)}
    held |= getattr(value, "__dict__", {})
    if held:
        return (kind, _form(held))
    try:
        return (kind, pickle.dumps(value))
    except (TypeError, AttributeError, pickle.PickleError) as error:
        raise InputError(_without_form(value, str(error))) from None


def _without_form(value: Any, reason: str) -> Problem:
    return Problem(
        "not-a-value",
        f"a {type(value).__name__} is on a stream or in a state, where values are kept and "
        f"compared: {reason}",
        "emit dataclasses or builtin values",
    )


def _is_compared_by_content(kind: type, value: Any) -> bool:
    if not any("__eq__" in vars(base) for base in kind.__mro__[:-1]):
        return False
    try:
        hash(value)
    except TypeError:
        return False
    return True
