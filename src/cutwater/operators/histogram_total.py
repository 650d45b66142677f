"""Incremental counting over a total order (P4, section 5.1, Fig. 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any

from cutwater.events import Data, Event
from cutwater.operators.batch import least_time
from cutwater.operators.log import Log
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import SnapshotCodec, counter_of, pairs_of, row_of

__all__ = ["histogram_total", "histogram_total_snapshot"]


# A time has ``<=`` but need not have ``<``, which Python sorts by.
def _compare(a: Any, b: Any) -> int:
    return -1 if a <= b else 1


_by_time = cmp_to_key(_compare)


def histogram_total(
    counts: Mapping[Any, int] | None = None, pending: Iterable[tuple[Any, Any]] = ()
) -> Operator:
    """`histogram` for totally ordered times and monotone streams (P4: ``ihist_op'``).

    Adds what a watermark completes to the last count instead of recounting everything. Outputs
    are in order of first occurrence of their times.

    2026-11: the else-branch of Fig. 7 emits nothing; equation (24) needs the watermark there.

    Keeps one count and what no watermark has completed yet.

    Laws
    ----
    (24), (27) on monotone streams over a total order it equals `histogram`.

    Examples
    --------
    >>> from cutwater.events import Watermark
    >>> from cutwater.operators import produce
    >>> events = [Data(1, "a"), Watermark(1), Data(2, "a"), Watermark(2)]
    >>> list(produce(histogram_total(), events))[2]
    Data(time=2, value=Counter({'a': 2}))
    """
    initial: tuple[Counter[Any], Log[tuple[Any, Any]]] = (Counter(counts or {}), Log(pending))
    nothing: tuple[Counter[Any], Log[tuple[Any, Any]]] = (Counter(), Log())

    def step(state: Any, event: Event) -> tuple[Any, Sequence[Event]]:
        base, held = state
        if isinstance(event, Data):
            return (base, held.append((event.time, event.value))), ()
        completed = [pair for pair in held if pair[0] <= event.time]
        if not completed:
            return state, (event,)
        counted = _running_counts(base, completed)
        rest = Log(pair for pair in held if not pair[0] <= event.time)
        newest = counted[max(counted, key=_by_time)]
        return (newest, rest), [*_in_order(counted), event]

    def finish(state: Any) -> Iterable[Event]:
        base, held = state
        return _in_order(_running_counts(base, held))

    return Operator(
        initial,
        step,
        finish,
        is_idle=lambda state: not state[1],
        due=lambda state: least_time(state[1]),
        awaits=lambda state: [time for time, _ in state[1]],
        is_blank=lambda state: state == nothing and initial == nothing,
        is_awake=bool(initial[1]),
        snapshot=histogram_total_snapshot,
        emits=lambda _time, value: counter_of(value),
    )


def _running_counts(
    base: Counter[Any], pairs: Iterable[tuple[Any, Any]]
) -> dict[Any, Counter[Any]]:
    """The count at each time: one pass in time order, listed in order of first occurrence."""
    at: dict[Any, list[Any]] = {}
    for time, value in pairs:
        at.setdefault(time, []).append(value)
    counts: dict[Any, Counter[Any]] = dict.fromkeys(at, base)
    running = base
    for time in sorted(at, key=_by_time):
        running = running.copy()
        running.update(at[time])
        counts[time] = running
    return counts


def _in_order(counts: Mapping[Any, Counter[Any]]) -> list[Data]:
    return [Data(time, counter.copy()) for time, counter in counts.items()]


def histogram_total_snapshot(time: Any, value: Any) -> SnapshotCodec:
    """The newest count, and the buffer."""
    return SnapshotCodec(
        row_of(Counter[value], pairs_of(time, value)),
        lambda state: (state[0], tuple(state[1])),
        lambda kept: (kept[0], Log(kept[1])),
    )
