"""A join of two streams that frees state once a time is complete on both sides."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cutwater.events import Data, Event
from cutwater.operators.join import join_list
from cutwater.operators.log import Log
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import SnapshotCodec, many_of, row_of
from cutwater.times import Left, Right, maximal

__all__ = ["join_by_time", "join_snapshot"]


def join_by_time(f: Callable[[Any, Any], Any | None]) -> Operator:
    """Joins the `Left` and `Right` values of each time once both sides have completed it.

    The times of data have sides; watermarks have none: they say what *both* sides have completed.

    Keeps a value until its time is complete on both sides.

    Laws
    ----
    The joined values are those of P4's `join`, in the same order within each time; nothing is kept
    for a completed time. Monotone streams stay monotone, productive ones productive.

    Examples
    --------
    >>> from cutwater.events import Watermark
    >>> from cutwater.operators import produce
    >>> from cutwater.times import Left, Right
    >>> events = [Data(Left(1), "a"), Data(Right(1), "b"), Data(Left(2), "c"), Watermark(1)]
    >>> list(produce(join_by_time(lambda a, b: a + b), events))
    [Data(time=1, value='ab'), Watermark(time=1)]
    """
    joined = join_list(f)
    empty: Log[tuple[Any, Any]] = Log()

    def release(held: Iterable[tuple[Any, Any]]) -> list[Event]:
        by_time: dict[Any, list[tuple[Any, Any]]] = {}
        for side, value in held:
            by_time.setdefault(side.time, []).append((side, value))
        return [
            Data(time, result)
            for time, pairs in by_time.items()
            for result in joined(pairs[0][0], pairs)
        ]

    def step(held: Log[tuple[Any, Any]], event: Event) -> tuple[Any, Sequence[Event]]:
        if isinstance(event, Data):
            return held.append((event.time, event.value)), ()
        complete = [pair for pair in held if pair[0].time <= event.time]
        if not complete:
            return held, (event,)
        rest = [pair for pair in held if not pair[0].time <= event.time]
        return Log(rest) if rest else empty, [*release(complete), event]

    def finish(held: Log[tuple[Any, Any]]) -> Iterable[Event]:
        rest = list(held)
        for limit in maximal(side.time for side, _ in held):
            yield from release(pair for pair in rest if pair[0].time <= limit)
            rest = [pair for pair in rest if not pair[0].time <= limit]

    return Operator(
        empty,
        step,
        finish,
        is_idle=operator.not_,
        is_blank=operator.not_,
        due=_least_time,
        awaits=lambda held: [side.time for side, _ in held],
    )


def _least_time(held: Iterable[tuple[Any, Any]]) -> Any:
    return min(side.time for side, _ in held)


def join_snapshot(time: Any, left: Any, right: Any) -> SnapshotCodec:
    """The buffer, in order of arrival: each time, with the value on one of two sides."""

    def freeze(held: Log[tuple[Any, Any]]) -> Any:
        return tuple(
            (side.time, (value,), ()) if isinstance(side, Left) else (side.time, (), (value,))
            for side, value in held
        )

    def thaw(kept: Any) -> Log[tuple[Any, Any]]:
        return Log(
            (Left(time), on_left[0]) if on_left else (Right(time), on_right[0])
            for time, on_left, on_right in kept
        )

    return SnapshotCodec(many_of(row_of(time, many_of(left), many_of(right))), freeze, thaw)
