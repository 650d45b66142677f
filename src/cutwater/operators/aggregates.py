"""Built-in aggregates: initial state, adding a value, merging two states, the result.

Use them by name: ``stream.aggregate(orders=agg.count(), total=agg.sum("amount"))``.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cutwater.annotations import members, union_of
from cutwater.operators.snapshot import many_of, row_of

__all__ = ["Aggregate", "collect", "count", "first", "last", "max", "mean", "min", "sum"]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate over one field, or over the whole value."""

    name: str
    field: str | None
    """The field it reads; None: the whole value."""
    zero: Any
    """The state before the first value."""
    add: Callable[[Any, Any], Any]
    """``(kept, value) -> kept``."""
    merge: Callable[[Any, Any], Any]
    """``(kept, kept) -> kept``, the earlier one first."""
    result: Callable[[Any], Any]
    """``kept -> result``."""
    type_of: Callable[[Any], Any]
    """Type of the field -> type of the result."""
    kept_as: Callable[[Any], Any] = lambda _tp: Any
    """Type of the field -> type of the state; `Any`: a run on Spark cannot serialise it."""
    keeps_all: bool = False
    """Does the state grow with every value?"""

    def value_of(self, event: Any) -> Any:
        """The part of an event that the aggregate reads."""
        return event if self.field is None else getattr(event, self.field)


def _same(kept: Any) -> Any:
    return kept


def _only(kept: tuple[Any, ...]) -> Any:
    return kept[0]


def _plus(a: Any, b: Any) -> Any:
    return a + b


def _summed(tp: Any) -> Any:
    """The type of a sum; a sum of bools is an int."""
    return union_of([int if member is bool else member for member in members(tp)])


def _whole(_tp: Any) -> Any:
    return int


def count() -> Aggregate:
    """The number of events."""
    return Aggregate("count", None, 0, lambda n, _: n + 1, _plus, _same, _whole, _whole)


def sum(field: str | None = None) -> Aggregate:
    """The sum, starting from 0; floats are added in the order of the run, so replays agree."""
    return Aggregate("sum", field, 0, _plus, _plus, _same, _summed, _summed)


def mean(field: str | None = None) -> Aggregate:
    """The arithmetic mean."""
    return Aggregate(
        "mean",
        field,
        (0, 0),
        lambda kept, value: (kept[0] + value, kept[1] + 1),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lambda kept: kept[0] / kept[1],
        lambda tp: union_of([float if m in (int, bool) else m for m in members(tp)]),
        lambda tp: row_of(_summed(tp), int),
    )


def _picked(name: str, field: str | None, pick: Callable[[Any, Any], Any]) -> Aggregate:
    def add(kept: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        return (pick(kept[0], value),) if kept else (value,)

    def merge(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return add(a, b[0]) if b else a

    return Aggregate(name, field, (), add, merge, _only, _same, many_of)


def min(field: str | None = None) -> Aggregate:
    """The smallest value."""
    return _picked("min", field, builtins.min)


def max(field: str | None = None) -> Aggregate:
    """The largest value."""
    return _picked("max", field, builtins.max)


def first(field: str | None = None) -> Aggregate:
    """The value that came first in the order of the run."""
    return _picked("first", field, lambda kept, _value: kept)


def last(field: str | None = None) -> Aggregate:
    """The value that came last in the order of the run."""
    return _picked("last", field, lambda _kept, value: value)


def collect(field: str | None = None) -> Aggregate:
    """All values as a list, in the order of the run; needs ``unbounded`` outside windows."""
    return Aggregate(
        "collect",
        field,
        (),
        lambda kept, value: (*kept, value),
        _plus,
        list,
        lambda tp: list[tp],  # type: ignore[valid-type]
        many_of,
        keeps_all=True,
    )
