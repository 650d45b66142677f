"""Pickling of functions and values for processes that cannot import their modules."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import io
import typing
from collections.abc import Collection
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle
import msgspec

from cutwater.errors import Problem, RefusedError

__all__ = ["pickle_by_value"]


def pickle_by_value(value: Any, modules: Collection[ModuleType] = ()) -> bytes:
    """Pickle a value for `pickle.loads`; functions and types that cannot be imported go by value.

    So does everything in `modules`. Raises what pickling raises where something cannot be sent,
    and `RefusedError` for a struct that would be sent by value.
    """
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        buffer = io.BytesIO()
        _Pickler(buffer).dump(value)
        return buffer.getvalue()
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _struct_cannot_travel(struct: type) -> Problem:
    """The problem of a struct sent by value: it would arrive without its fields."""
    return Problem(
        "struct-cannot-travel",
        f"{struct.__name__} is a msgspec.Struct of module '{struct.__module__}', which Spark's "
        "processes cannot import",
        "make it a dataclass, or put it into an installed package",
    )


_CachedFunction = type(functools.lru_cache(len))
"""Its own reduction is a name, which cannot be imported from the user's module."""


def _cached(f: FunctionType, parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(f)


def _cached_property(f: FunctionType, name: str) -> Any:
    made = functools.cached_property(f)
    made.__set_name__(object, name)
    return made


def _goes_by_value(f: Any) -> bool:
    return isinstance(f, FunctionType) and isinstance(_asked(f), tuple)


def _asked(f: FunctionType) -> Any:
    """How cloudpickle sends a function: a tuple if by value."""
    return cloudpickle.Pickler(io.BytesIO()).reducer_override(f)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles dataclasses faithfully: required fields stay required.

    Drops msgspec's cache on a class, and resolves annotations that are text.
    """

    def reducer_override(self, obj: Any) -> Any:
        if obj is dataclasses.MISSING:  # a copy would be mistaken for a field's default
            return "MISSING"
        if type(obj) is msgspec.Meta:  # constraints in an annotation; not picklable
            return functools.partial(msgspec.Meta, **_asked_for(obj)), ()
        if isinstance(obj, type) and "__msgspec_cache__" in vars(obj):
            delattr(obj, "__msgspec_cache__")
        if isinstance(obj, functools.cached_property):  # holds a lock before Python 3.12
            return _cached_property, (obj.func, obj.attrname)
        if isinstance(obj, _CachedFunction) and _goes_by_value(obj.__wrapped__):
            return _cached, (obj.__wrapped__, obj.cache_parameters())
        reduced = super().reducer_override(obj)
        is_struct = isinstance(obj, type) and issubclass(obj, msgspec.Struct)
        if is_struct and isinstance(reduced, tuple):
            raise RefusedError(_struct_cannot_travel(obj))
        if isinstance(obj, (type, FunctionType)) and isinstance(reduced, tuple) and reduced[2:]:
            _spell_out(obj, reduced[2])
        return reduced


def _asked_for(meta: msgspec.Meta) -> dict[str, Any]:
    names = inspect.signature(msgspec.Meta).parameters
    attributes = {name: getattr(meta, name) for name in names}
    return {name: value for name, value in attributes.items() if value is not None}


def _spell_out(obj: Any, state: Any) -> None:
    """Resolve annotations that are text: their names cannot be resolved in another process.

    `state` is what cloudpickle sends for a function or class that it pickles by value.
    """
    attributes, slots = state
    own = (slots if isinstance(obj, FunctionType) else attributes).get("__annotations__") or {}
    if any(isinstance(annotation, str) for annotation in own.values()):
        try:
            hints = typing.get_type_hints(obj, include_extras=True)
        except (NameError, TypeError):
            return
        spelled = {name: hints.get(name, annotation) for name, annotation in own.items()}
        (slots if isinstance(obj, FunctionType) else attributes)["__annotations__"] = spelled
