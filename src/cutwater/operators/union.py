"""Two streams merged into one (P4, section 5.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cutwater.events import Data, Event, Watermark
from cutwater.operators.operator import Operator
from cutwater.times import maximal

__all__ = ["is_producible", "union"]


def is_producible(watermark: Any, seen: Iterable[Any]) -> bool:
    """Has the opposite side seen a watermark at or above this one? (P4: ``producible``.)"""
    return any(watermark <= other.opposite for other in seen)


def union(waiting: Iterable[Any] = (), seen: Iterable[Any] = ()) -> Operator:
    """Strips the sides from a stream over `Left` and `Right` times (P4: ``union_op``).

    Data passes at once; a watermark passes once both sides have completed it. `waiting` are
    watermarks that one side has seen and the other has not, newest first; `seen` the maximal ones.

    Keeps the watermarks that wait for the other side.

    Laws
    ----
    The data is that of the input, without sides; monotone streams stay monotone; productive
    streams stay productive if every watermark `is_producible` from all of them.

    Examples
    --------
    >>> from cutwater.operators import produce
    >>> from cutwater.times import Left, Right
    >>> list(produce(union(), [Watermark(Left(2)), Data(Right(1), "a"), Watermark(Right(1))]))
    [Data(time=1, value='a'), Watermark(time=1)]
    """
    initial = (tuple(waiting), tuple(maximal(seen)))
    # if False, a side's waiting watermarks depend on the other side only, and are not rechecked
    may_be_due = bool(initial[0])

    def step(state: Any, event: Event) -> tuple[Any, Sequence[Event]]:
        waiting, seen = state
        if isinstance(event, Data):
            return state, (Data(event.time.time, event.value),)
        seen = tuple(maximal([*seen, event.time]))
        candidates = (event.time, *waiting)
        own = None if may_be_due else type(event.time)
        if all(type(mark) is own for mark in seen):
            return (candidates, seen), ()
        ready = [
            mark
            for number, mark in enumerate(candidates)
            if (not number or type(mark) is not own) and is_producible(mark, seen)
        ]
        if ready:
            candidates = tuple(mark for mark in candidates if mark not in ready)
        return (candidates, seen), [Watermark(mark.time) for mark in ready]

    return Operator(initial, step)
