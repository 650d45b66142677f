"""Running aggregates over whole columns: the same numbers as adding values one by one.

The state of an aggregate is one or two columns. If the order of values does not affect the result
(counts, sums and extremes of whole numbers), the values of a key may be pre-aggregated before the
shuffle; every other aggregate processes each value, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutwater.annotations import plain_type
from cutwater.errors import Problem, StepError
from cutwater.operators.aggregates import Aggregate
from cutwater.vectors import Keys
from cutwater.vectors.arrays import Array

__all__ = ["ColumnAggregate", "column_aggregate"]

_LARGEST = (1 << 63) - 1
_LOW_HALF = (1 << 32) - 1
_EXACT = 1 << 53
"""Smaller whole numbers are converted to floats without loss."""


@dataclass(frozen=True)
class ColumnAggregate:
    """One aggregate, for many keys at once."""

    number: int
    """Its number among the aggregates of its step: the name of its output may change."""
    name: str
    """Its name in the flow."""
    verb: str
    field: str | None
    """The field it reads."""
    kinds: tuple[str, ...]
    """The kind of each column it keeps."""
    is_orderless: bool
    """Is the result independent of the order of values?"""

    @property
    def columns(self) -> dict[str, str]:
        """Name and kind of each column it keeps."""
        return {f"{self.number}.{number}": kind for number, kind in enumerate(self.kinds)}

    def lifted(self, values: Array | None, size: int) -> list[Array]:
        """The state of each of `size` values alone."""
        if self.verb == "count":
            return [np.ones(size, np.int64)]
        assert values is not None
        if self.kinds[0] == "int":
            values = values.astype(np.int64, copy=False)
        return [values, np.ones(size, np.int64)] if self.verb == "mean" else [values]

    def running(
        self, keys: Keys, lifted: Sequence[Array], before: Sequence[Array], is_new: Array
    ) -> list[Array]:
        """The state after each value, given the state of each key before."""
        return self._each(_Running(keys), keys, lifted, before, is_new)

    def folded(
        self, keys: Keys, lifted: Sequence[Array], before: Sequence[Array], is_new: Array
    ) -> list[Array]:
        """The state of each key after all values."""
        return self._each(_Folding(keys), keys, lifted, before, is_new)

    def shown(self, kept: Sequence[Array]) -> Array:
        """The value that the aggregate emits, from its state."""
        if self.verb != "mean":
            return kept[0]
        total, count = kept
        if total.dtype.kind == "i" and _magnitude(total) >= _EXACT:
            pairs = zip(total.tolist(), count.tolist(), strict=True)
            return np.array([a / b for a, b in pairs], np.float64)
        return total / count

    def _each(
        self,
        how: _Running | _Folding,
        keys: Keys,
        lifted: Sequence[Array],
        before: Sequence[Array],
        is_new: Array,
    ) -> list[Array]:
        if self.verb in ("count", "sum", "mean"):
            return [
                how.sum(self._bounded(how, values, start), start)
                for values, start in zip(lifted, before, strict=True)
            ]
        values, start = lifted[0], before[0].copy()
        start[is_new] = keys.first(values)[is_new]
        if self.verb == "first":
            return [how.spread(start)]
        if self.verb == "last":
            return [how.newest(values)]
        if _has_no_plain_order(values) or _has_no_plain_order(start):
            return [how.picked(min if self.verb == "min" else max, values, start)]
        return [how.extreme(self.verb, values, start)]

    def _bounded(self, how: _Running | _Folding, values: Array, start: Array) -> Array:
        """The values; raises `StepError` if a sum of them does not fit into 64 bits."""
        if values.dtype.kind == "i":
            most = _magnitude(values) * len(values) + _magnitude(start)
            if most > _LARGEST and not _has_whole_sums(how, values, start):
                raise StepError(_too_large(self.name))
        return values


class _Running:
    """After each event."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def sum(self, values: Array, start: Array) -> Array:
        return self._keys.running_sum(values, start)

    def extreme(self, verb: str, values: Array, start: Array) -> Array:
        keys = self._keys
        return (keys.running_min if verb == "min" else keys.running_max)(values, start)

    def spread(self, of_keys: Array) -> Array:
        return of_keys[self._keys.of]

    def newest(self, values: Array) -> Array:
        return values

    def picked(self, pick: Callable[[Any, Any], Any], values: Array, start: Array) -> Array:
        """One by one by `pick`, for values that ``<`` does not distinguish (0.0 and -0.0)."""
        kept, found = start.tolist(), []
        for key, value in zip(self._keys.of.tolist(), values.tolist(), strict=True):
            kept[key] = pick(kept[key], value)
            found.append(kept[key])
        return np.array(found, values.dtype)


class _Folding:
    """After all events."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def sum(self, values: Array, start: Array) -> Array:
        return self._keys.sum(values, start)

    def extreme(self, verb: str, values: Array, start: Array) -> Array:
        keys = self._keys
        return (keys.min if verb == "min" else keys.max)(values, start)

    def spread(self, of_keys: Array) -> Array:
        return of_keys

    def newest(self, values: Array) -> Array:
        return self._keys.last(values)

    def picked(self, pick: Callable[[Any, Any], Any], values: Array, start: Array) -> Array:
        return self._keys.last(_Running(self._keys).picked(pick, values, start))


def _has_no_plain_order(values: Array) -> bool:
    """Are there values that ``<`` does not distinguish, or that are not numbers?"""
    if values.dtype.kind == "O":
        return True
    if values.dtype.kind != "f":
        return False
    return bool(np.isnan(values).any() or (np.signbit(values) & (values == 0)).any())


def _has_whole_sums(how: _Running | _Folding, values: Array, start: Array) -> bool:
    """Does every sum fit into 64 bits? Sums high and low halves apart, which cannot overflow."""
    low = how.sum(values & _LOW_HALF, start & _LOW_HALF)
    high = how.sum(values >> 32, start >> 32) + (low >> 32)
    return bool(np.all((high >= -(1 << 31)) & (high < 1 << 31)))


def _magnitude(values: Array) -> int:
    return max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0


def _too_large(name: str) -> Problem:
    return Problem(
        "sum-too-large",
        f"'{name}' may grow beyond 64 bits, the size of a sum of integers",
        "sum floats or decimals, or keep the sum in a task",
    )


def column_aggregate(
    number: int, name: str, aggregate: Aggregate, fields: Mapping[str, Any]
) -> ColumnAggregate | None:
    """The aggregate for whole columns; None if it must process values one by one."""
    verb, field = aggregate.name, aggregate.field
    if verb == "count":
        return ColumnAggregate(number, name, verb, None, ("int",), is_orderless=True)
    tp: Any = plain_type(fields.get(field)) if field else None
    kind = {int: "int", float: "float", bool: "int" if verb in ("sum", "mean") else None}.get(tp)
    if kind is None:
        return None
    is_orderless = kind == "int" and verb in ("sum", "min", "max", "mean")
    if verb == "mean":
        return ColumnAggregate(number, name, verb, field, (kind, "int"), is_orderless)
    if verb in ("sum", "min", "max", "first", "last"):
        return ColumnAggregate(number, name, verb, field, (kind,), is_orderless)
    return None
