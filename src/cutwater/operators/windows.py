"""Windows in event time, and aggregates over them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cutwater.errors import InputError, Problem
from cutwater.events import Data, Event
from cutwater.operators.aggregate import MakeRecord, add_to, results_of, zeros
from cutwater.operators.aggregates import Aggregate
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import SnapshotCodec, many_of, row_of
from cutwater.times import just_before

__all__ = [
    "Session",
    "Sliding",
    "Window",
    "aggregate_windows",
    "aggregate_windows_snapshot",
    "session",
    "sliding",
    "starts_of",
    "tumbling",
    "windows_of",
]


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows of a fixed size that start at fixed intervals; tumbling if the two are equal."""

    size: Any
    every: Any
    offset: Any = None
    """A time at which a window starts; None: zero, or the start of 1970."""


@dataclass(frozen=True, slots=True)
class Session:
    """Windows of events that are less than `gap` apart."""

    gap: Any


Window = Sliding | Session


def tumbling(size: Any, *, offset: Any = None) -> Sliding:
    """Consecutive windows of a fixed size: ``[0, size)``, ``[size, 2 * size)``, …

    >>> list(starts_of(tumbling(10), 25))
    [20]
    """
    return Sliding(size, size, offset)


def sliding(size: Any, *, every: Any, offset: Any = None) -> Sliding:
    """Windows of a fixed size, one starting every `every`; an event is in ``size / every`` of them.

    >>> list(starts_of(sliding(10, every=5), 12))
    [5, 10]
    """
    return Sliding(size, every, offset)


def session(gap: Any) -> Session:
    """Windows that end when no event has occurred for `gap`.

    Where an event joins two sessions, the state of the earlier session is merged first, whichever
    of their events came first in the order of the run.
    """
    return Session(gap)


def starts_of(window: Sliding, time: Any) -> list[Any]:
    """The starts of the windows that contain a time, earliest first."""
    return [start for start, _ in windows_of(window, time)]


def windows_of(window: Sliding, time: Any) -> list[tuple[Any, Any]]:
    """Start and end of the windows that contain a time, earliest first.

    Both are computed from the number of the window alone, so that a window has the same bounds
    for each of its events and, even with floats, a tumbling window ends where the next begins.
    Raises `InputError` if the windows are too small to be distinguished at this time.
    """
    if time + window.every == time:
        raise _too_far(window, time)
    # bounds have the type of the time, so that the last time before an end has it too
    origin = (_zero(time) if window.offset is None else window.offset) + (time - time)

    def start(number: Any) -> Any:
        return origin + number * window.every

    def end(number: Any) -> Any:
        is_tumbling = window.size == window.every
        return start(number + 1) if is_tumbling else start(number) + window.size

    number = int((time - origin) // window.every)
    # division of Decimals truncates towards zero, and of floats it rounds
    while start(number) > time:
        number -= 1
    while start(number + 1) <= time:
        number += 1
    found = []
    while end(number) > time:
        found.append((start(number), end(number)))
        number -= 1
    return found[::-1]


def _too_far(window: Sliding, time: Any) -> InputError:
    return InputError(
        Problem(
            "window-too-small",
            f"at time {time!r} windows every {window.every!r} cannot be told apart",
            "choose larger windows, or another unit of time",
        )
    )


def _zero(time: Any) -> Any:
    if isinstance(time, dt.datetime):
        return dt.datetime(1970, 1, 1, tzinfo=time.tzinfo and dt.UTC)
    if isinstance(time, dt.date):
        return dt.date(1970, 1, 1)
    return dt.timedelta() if isinstance(time, dt.timedelta) else 0


def aggregate_windows(
    window: Window,
    aggregates: Sequence[Aggregate],
    make: MakeRecord,
    *,
    number: type[float] | type[Decimal] | None = None,
) -> Operator:
    """Aggregates each window, emitted once as ``make(key, start, end, *results)``.

    A window ``[start, end)`` is complete when a watermark is at or past the last time in it; the
    result has that last time. The end of the input completes every window.

    `number` is the type that times are converted to, even if one arrives as an int: the last float
    before 10 is not 9. None: no conversion.

    Keeps one value per aggregate for every window that is not complete.

    Laws
    ----
    Each result is the aggregate of exactly the events in its window; monotone streams stay
    monotone and productive ones productive.

    Examples
    --------
    >>> from cutwater.events import Watermark
    >>> from cutwater.operators import aggregates as agg, produce
    >>> op = aggregate_windows(tumbling(10), [agg.count()], lambda key, *row: row)
    >>> list(produce(op, [Data(1, "a"), Data(12, "b"), Data(3, "c"), Watermark(9)]))
    [Data(time=9, value=(0, 10, 2)), Watermark(time=9), Data(time=19, value=(10, 20, 1))]
    """
    add = _session_adder(window, aggregates) if isinstance(window, Session) else None
    add = add or _sliding_adder(window, aggregates)  # type: ignore[arg-type]

    def show(key: Any, windows: Iterable[_Open]) -> list[Event]:
        return [
            Data(just_before(end), make(key, start, end, *results_of(aggregates, kept)))
            for start, end, kept in windows
        ]

    def step(state: Any, event: Event) -> tuple[Any, Sequence[Event]]:
        key, opened = state
        if isinstance(event, Data):
            time = number(event.time) if number else event.time
            return (key, add(opened, time, event.value)), ()
        complete = [w for w in opened if just_before(w[1]) <= event.time]
        if not complete:
            return state, (event,)
        still_open = tuple(w for w in opened if not just_before(w[1]) <= event.time)
        return (key, still_open), [*show(key, complete), event]

    return Operator(
        (None, ()),
        step,
        lambda state: show(state[0], state[1]),
        start=lambda key: (key, ()),
        is_idle=lambda state: not state[1],
        due=lambda state: just_before(min(end for _, end, _ in state[1])),
        is_blank=lambda state: not state[1],
    )


_Open = tuple[Any, Any, tuple[Any, ...]]
"""An open window: start, end, and the states of its aggregates."""

_Add = Callable[[tuple[_Open, ...], Any, Any], tuple[_Open, ...]]


def _sliding_adder(window: Sliding, aggregates: Sequence[Aggregate]) -> _Add:
    empty = zeros(aggregates)

    def add(opened: tuple[_Open, ...], time: Any, value: Any) -> tuple[_Open, ...]:
        by_start = {w[0]: w for w in opened}
        for start, end in windows_of(window, time):
            kept = by_start[start][2] if start in by_start else empty
            by_start[start] = (start, end, add_to(aggregates, kept, value))
        return tuple(by_start[start] for start in sorted(by_start))

    return add


def _session_adder(window: Session, aggregates: Sequence[Aggregate]) -> _Add:
    empty = zeros(aggregates)

    def add(opened: tuple[_Open, ...], time: Any, value: Any) -> tuple[_Open, ...]:
        start, end, kept = time, time + window.gap, empty
        apart: list[_Open] = []
        for other in opened:
            if other[0] < end and start < other[1]:
                start, end = min(start, other[0]), max(end, other[1])
                kept = _merge(aggregates, kept, other[2])
            else:
                apart.append(other)
        joined = (start, end, add_to(aggregates, kept, value))
        return tuple(sorted([*apart, joined], key=lambda w: w[0]))

    return add


def _merge(aggregates: Sequence[Aggregate], a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(g.merge(x, y) for g, x, y in zip(aggregates, a, b, strict=True))


def aggregate_windows_snapshot(key: Any, bound: Any, kept: Sequence[Any]) -> SnapshotCodec:
    """The key, and for each open window its bounds and the states of its aggregates."""
    return SnapshotCodec(row_of(key, many_of(row_of(bound, bound, row_of(*kept)))))
