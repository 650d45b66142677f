"""What several inputs have completed together: P4's union rule, for any number of inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from cutwater.times import maximal

__all__ = ["Frontier"]


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


def _is_common(mark: tuple[int, Any], seen: tuple[tuple[Any, ...], ...]) -> bool:
    source, time = mark
    return all(i == source or any(time <= other for other in marks) for i, marks in enumerate(seen))
