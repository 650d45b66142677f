"""What several inputs have completed together: P4's union rule, for any number of inputs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from cutwater.times import maximal

__all__ = ["Frontier"]


@dataclass(frozen=True, slots=True)
class Frontier:
    """The maximal watermarks of each input, and those that wait for the other inputs.

    A watermark is common once every other input has one at or above it. For two inputs this is
    P4's ``union_op``, but for watermarks that come after a larger one; where two watermarks have
    no meet, nothing is made up.

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
    held: tuple[tuple[Any, ...], ...]
    """For each input its watermarks that not every input has reached, newest first."""

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

        What waits at the input itself waits for others, so it is not looked at again. Over a total
        order only the newest of it can still become common with something larger, so an input that
        is silent makes the others keep one watermark each.
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


_TOTAL = (int, float, Decimal, str, dt.date, dt.timedelta)
"""Times of these types compare with all others that they meet."""


def _added(waiting: tuple[Any, ...], new: Iterable[Any]) -> tuple[Any, ...]:
    """What waits at one input, newest first, without what another of a total order stands for."""
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
