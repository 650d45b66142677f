"""What several inputs have completed together: P4's union rule, for any number of inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from cutwater.times import Product, maximal

__all__ = ["Frontier", "ProductFrontier"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Frontier:
    """The maximal watermarks of each input, and those that wait for the other inputs.

    A watermark is common once every other input has one at or above it. For two inputs this is
    P4's ``union_op``; where two watermarks have no meet, nothing is made up.

    >>> frontier = Frontier.of(2)
    >>> frontier, common = frontier.advance(0, [20])
    >>> common
    []
    >>> frontier, common = frontier.advance(1, [15])
    >>> common
    [15]
    """

    seen: tuple[tuple[Any, ...], ...]
    """For each input the maximal times of its watermarks."""
    waiting: tuple[tuple[int, Any], ...] = field(default=())
    """Watermarks that not every input has reached, with their input, newest first."""

    @staticmethod
    def of(inputs: int) -> Frontier:
        """The frontier of inputs that have not completed anything."""
        return Frontier(((),) * inputs)

    def advance(self, source: int, times: Iterable[Any]) -> tuple[Frontier, list[Any]]:
        """The frontier after watermarks of one input, and the watermarks that became common."""
        new = list(times)
        if len(self.seen) == 1:
            return replace(self, seen=(tuple(maximal([*self.seen[0], *new])),)), new
        seen = tuple(
            tuple(maximal([*marks, *new])) if i == source else marks
            for i, marks in enumerate(self.seen)
        )
        candidates = (*((source, time) for time in reversed(new)), *self.waiting)
        ready = [mark for mark in candidates if _is_common(mark, seen)]
        waiting = tuple(
            mark
            for mark in candidates
            if mark not in ready and not any(mark[1] <= time for _, time in ready)
        )
        return Frontier(seen, waiting), [time for _, time in ready]


@dataclass(frozen=True, slots=True)
class ProductFrontier:
    """What inputs with two clocks have completed: products of the watermarks of the two sides.

    >>> frontier, common = ProductFrontier.of([0, 1]).advance(0, [20])
    >>> common
    []
    >>> frontier.advance(1, [3])[1]
    [Product(first=20, second=3)]
    """

    sides: tuple[int, ...]
    """The side of each input, 0 or 1."""
    frontiers: tuple[Frontier, Frontier]
    """For each side, that of its inputs."""
    completed: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
    """For each side the maximal times that all its inputs completed."""

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


def _put(pair: tuple[T, T], side: int, value: T) -> tuple[T, T]:
    return (value, pair[1]) if side == 0 else (pair[0], value)


def _is_common(mark: tuple[int, Any], seen: tuple[tuple[Any, ...], ...]) -> bool:
    source, time = mark
    return all(i == source or any(time <= other for other in marks) for i, marks in enumerate(seen))
