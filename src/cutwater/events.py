"""Events: data with a time, and watermarks that say which times are complete (P4, section 4).

A watermark is inclusive: nothing with a time ``<= w`` comes after ``Watermark(w)``.

==============================  =============================================
P4                              here
==============================  =============================================
``DT t d``, ``WM t``            `Data`, `Watermark`
``mono lxs W``                  ``monotone(events, seen=W)``
``prod lxs``                    `uncompleted` and `productive`: a prefix cannot show whether an
                                infinite stream is productive, so we ask what a prefix still
                                owes, or bound how long it may owe it
==============================  =============================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from cutwater.times import maximal

__all__ = ["Data", "Event", "Verdict", "Watermark", "monotone", "productive", "uncompleted"]


class Data(msgspec.Struct, frozen=True):
    """A value and the time it belongs to.

    >>> Data(3, "a")
    Data(time=3, value='a')
    """

    time: Any
    value: Any


class Watermark(msgspec.Struct, frozen=True):
    """The promise that nothing with a time ``<=`` this one follows."""

    time: Any


Event = Data | Watermark


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a property holds, and if not, at which event it stops holding and why."""

    holds: bool
    position: int | None = None
    """Index of the first event at which it does not hold."""
    reason: str = ""

    def __bool__(self) -> bool:
        return self.holds


def monotone(events: Iterable[Event], seen: Iterable[Any] = ()) -> Verdict:
    """Does every watermark keep its promise? (P4: ``mono``.)

    `seen` holds the times of earlier watermarks. Pass a prefix of an infinite stream.

    >>> bool(monotone([Data(1, "a"), Watermark(1), Data(2, "b")]))
    True
    >>> monotone([Watermark(1), Data(0, "a")])
    Verdict(holds=False, position=1, reason='time 0 was completed by the watermark 1')
    """
    completed = maximal(seen)
    for position, event in enumerate(events):
        if isinstance(event, Watermark):
            completed = maximal([*completed, event.time])
            continue
        for time in completed:
            if event.time <= time:
                reason = f"time {event.time!r} was completed by the watermark {time!r}"
                return Verdict(False, position, reason)
    return Verdict(True)


def uncompleted(prefix: Iterable[Event]) -> list[Data]:
    """The data in a prefix that no later watermark has completed yet.

    >>> uncompleted([Data(1, "a"), Data(3, "b"), Watermark(2)])
    [Data(time=3, value='b')]
    """
    owed: list[Data] = []
    for event in prefix:
        if isinstance(event, Watermark):
            owed = [data for data in owed if not data.time <= event.time]
        else:
            owed.append(event)
    return owed


def productive(events: Iterable[Event], *, lag: int) -> Verdict:
    """Is every item completed by one of the `lag` events that follow it?

    Items with fewer than `lag` events after them are not judged: a finite stream is productive
    whatever it ends with.

    >>> bool(productive([Data(1, "a"), Data(2, "b"), Watermark(2)], lag=2))
    True
    >>> productive([Data(1, "a"), Data(2, "b"), Watermark(2)], lag=1).reason
    'time 1 was not completed within 1 events'
    """
    owed: deque[tuple[int, Data]] = deque()
    for position, event in enumerate(events):
        if isinstance(event, Watermark):
            owed = deque(item for item in owed if not item[1].time <= event.time)
        else:
            owed.append((position, event))
        if owed and owed[0][0] + lag <= position:
            start, data = owed[0]
            return Verdict(
                False, start, f"time {data.time!r} was not completed within {lag} events"
            )
    return Verdict(True)
