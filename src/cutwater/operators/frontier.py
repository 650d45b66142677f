"""The common frontier of several inputs: P4's union rule, for any number of inputs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeVar

from cutwater.times import Product, maximal

__all__ = ["Frontier", "ProductFrontier"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Frontier:
    """The maximal watermarks of each input, and those that wait for the other inputs.

    A watermark is common once every other input has one at or above it. For two inputs this is
    P4's ``union_op``, except for watermarks that come after a larger one; where two watermarks
    have no meet, none is invented.

    >>> frontier = Frontier.of(2)
    >>> frontier, common = frontier.advance(0, [20])
    >>> common
    []
    >>> frontier, common = frontier.advance(1, [15])
    >>> common
    [15]
    """

    seen: tuple[tuple[Any, ...], ...]
    """For each input, the maximal times of its watermarks."""
    held: tuple[tuple[Any, ...], ...]
    """For each input, its watermarks that not every input has reached, newest first."""

    @staticmethod
    def of(inputs: int) -> Frontier:
        """The frontier of inputs that have not completed anything."""
        return Frontier(((),) * inputs, ((),) * inputs)

    @property
    def waiting(self) -> tuple[tuple[int, Any], ...]:
        """Watermarks that not every input has reached, with their input."""
        return tuple((source, time) for source, times in enumerate(self.held) for time in times)

    def advance(self, source: int, times: Iterable[Any]) -> tuple[Frontier, list[Any]]:
        """The frontier after watermarks of one input, and the watermarks that became common.

        What waits at the input itself waits for others, so it is not checked again. Over a total
        order only the newest of it can still become common with something larger, so a silent
        input makes each of the others keep just one watermark.
        """
        new = list(times)
        seen = _with(self.seen, source, tuple(maximal([*self.seen[source], *new])))
        if len(seen) == 1:
            return replace(self, seen=seen), new
        ready = [time for time in reversed(new) if _is_common(source, time, seen)]
        ready += [
            time
            for other, waiting in enumerate(self.held)
            if other != source
            for time in waiting
            if _is_common(other, time, seen)
        ]
        held = _with(self.held, source, _added(self.held[source], new))
        if ready:
            held = tuple(
                tuple(time for time in waiting if not any(time <= done for done in ready))
                for waiting in held
            )
        return Frontier(seen, held), ready


@dataclass(frozen=True, slots=True)
class ProductFrontier:
    """The frontier of inputs with two clocks: products of the watermarks of the two sides.

    >>> frontier, common = ProductFrontier.of([0, 1]).advance(0, [20])
    >>> common
    []
    >>> frontier.advance(1, [3])[1]
    [Product(first=20, second=3)]
    """

    sides: tuple[int, ...]
    """The side of each input, 0 or 1."""
    frontiers: tuple[Frontier, Frontier]
    """For each side, the frontier of its inputs."""
    completed: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
    """For each side, the maximal times that all its inputs have completed."""

    @staticmethod
    def of(sides: Sequence[int]) -> ProductFrontier:
        """The frontier of inputs that have not completed anything."""
        left, right = (Frontier.of(sides.count(side)) for side in (0, 1))
        return ProductFrontier(tuple(sides), (left, right))

    def advance(self, source: int, times: Iterable[Any]) -> tuple[ProductFrontier, list[Any]]:
        """The frontier after watermarks of one input, and the products that became complete."""
        side = self.sides[source]
        place = self.sides[:source].count(side)
        moved, common = self.frontiers[side].advance(place, times)
        if not common:
            return replace(self, frontiers=_put(self.frontiers, side, moved)), []
        done = _put(self.completed, side, tuple(maximal([*self.completed[side], *common])))
        products = [Product(first, second) for first in done[0] for second in done[1]]
        return ProductFrontier(self.sides, _put(self.frontiers, side, moved), done), products


def _put(pair: tuple[_T, _T], side: int, value: _T) -> tuple[_T, _T]:
    return (value, pair[1]) if side == 0 else (pair[0], value)


_TOTAL = (int, float, Decimal, str, dt.date, dt.timedelta)
"""Types whose times compare with all other times in the same stream."""


def _added(waiting: tuple[Any, ...], new: Iterable[Any]) -> tuple[Any, ...]:
    """What waits at one input, newest first; of a total order, only the largest is kept."""
    for time in new:
        if isinstance(time, _TOTAL):
            if any(time <= other for other in waiting):
                continue
            waiting = tuple(other for other in waiting if not other <= time)
        waiting = (time, *waiting)
    return waiting


def _with(parts: tuple[Any, ...], number: int, part: Any) -> tuple[Any, ...]:
    return (*parts[:number], part, *parts[number + 1 :])


def _is_common(source: int, time: Any, seen: tuple[tuple[Any, ...], ...]) -> bool:
    return all(i == source or any(time <= other for other in marks) for i, marks in enumerate(seen))
