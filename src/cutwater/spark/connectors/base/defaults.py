"""Fills in defaults: a field that is missing in the JSON line is set on the record itself.

msgspec leaves a plain default on the dataclass, where attribute access finds it. Writing the record
would omit that field, since a writer sees only what the instance itself holds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, get_args, get_origin

from cutwater.annotations import fields_of, members, plain_type

__all__ = ["Fill", "filler_of"]

Fill = Callable[[Any], None]


def filler_of(tp: Any) -> Fill | None:
    """A function that fills in the defaults of a value in place; None if the type has none.

    >>> filler_of(int) is None
    True
    """
    return _filler(tp, {})


def _filler(tp: Any, known: dict[Any, Fill | None]) -> Fill | None:
    alternatives = [m for member in members(tp) for m in members(plain_type(member))]
    fillers = {get_origin(m) or m: _of_one(m, known) for m in alternatives}
    found = {kind: fill for kind, fill in fillers.items() if fill is not None}
    if not found:
        return None
    if len(alternatives) == 1:
        return next(iter(found.values()))

    def fill(value: Any) -> None:
        one = found.get(type(value))
        if one is not None:
            one(value)

    return fill


def _of_one(tp: Any, known: dict[Any, Fill | None]) -> Fill | None:
    origin, args = get_origin(tp), get_args(tp)
    if dataclasses.is_dataclass(tp) and isinstance(tp, type):
        return _dataclass(tp, known)
    if origin in (list, set, frozenset) or (origin is tuple and args[1:] == (...,)):
        inside = _filler(args[0], known)
        return inside and _each(inside, lambda value: value)
    if origin is dict:
        inside = _filler(args[1], known)
        return inside and _each(inside, lambda value: value.values())
    return None


def _each(inside: Fill, items_of: Callable[[Any], Any]) -> Fill:
    def fill(value: Any) -> None:
        for item in items_of(value):
            inside(item)

    return fill


def _dataclass(tp: Any, known: dict[Any, Fill | None]) -> Fill | None:
    if tp in known:
        return known[tp]
    known[tp] = lambda value: fill(value)  # a type that contains itself
    names = [field.name for field in dataclasses.fields(tp)]
    defaults = {
        field.name: field.default
        for field in dataclasses.fields(tp)
        if field.default is not dataclasses.MISSING and tp.__dictoffset__
    }
    types = fields_of(tp) or {}
    inner = [(n, one) for n in names if (one := _filler(types.get(n, Any), known)) is not None]

    def fill(value: Any) -> None:
        if defaults and len(value.__dict__) < len(names):
            held = value.__dict__
            whole = {n: held[n] if n in held else defaults[n] for n in names}
            held.clear()
            held.update(whole)
        for name, one in inner:
            one(getattr(value, name))

    known[tp] = fill if defaults or inner else None
    return known[tp]
