"""Batches of completed times (P4, section 4.2)."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from cutwater.events import Data, Event
from cutwater.operators.log import Log
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import SnapshotCodec, pairs_of
from cutwater.times import maximal

__all__ = ["Pairs", "batch", "batch_snapshot", "batches", "least_time"]

Pairs = tuple[tuple[Any, Any], ...]
"""The contents of a batch: times and values, in order of arrival."""


def batches(
    watermarks: Iterable[Any], pending: Iterable[tuple[Any, Any]]
) -> tuple[list[Data], list[tuple[Any, Any]]]:
    """One batch per watermark, of what it completes and no earlier one did; and the rest."""
    made: list[Data] = []
    rest = list(pending)
    for time in watermarks:
        completed = tuple(pair for pair in rest if pair[0] <= time)
        rest = [pair for pair in rest if not pair[0] <= time]
        made.append(Data(time, completed))
    return made, rest


def batch(pending: Iterable[tuple[Any, Any]] = ()) -> Operator:
    """Buffers data until a watermark completes it, then emits it as one batch.

    A batch is a tuple of ``(time, value)`` and has the time of the watermark. The end of the
    input completes everything: one batch for each maximal buffered time (P4: ``batch_op``).

    Keeps what no watermark has completed; a watermark frees it. Cost: constant for data, linear
    in the size of the buffer for a watermark.

    Laws
    ----
    (10) a batch at `w` contains the complete collections of all times ``<= w`` that were not
    completed before; (11) every input is in some batch; (12) monotone streams stay monotone, if
    nothing pending was completed before; (13) productive streams stay productive.

    Examples
    --------
    >>> from cutwater.events import Watermark
    >>> from cutwater.operators import produce
    >>> for event in produce(batch(), [Data(1, "a"), Data(2, "b"), Watermark(1)]):
    ...     print(event)
    Data(time=1, value=((1, 'a'),))
    Watermark(time=1)
    Data(time=2, value=((2, 'b'),))
    """
    empty: Log[tuple[Any, Any]] = Log()
    initial = Log(pending) if pending else empty

    def step(held: Log[tuple[Any, Any]], event: Event) -> tuple[Any, Sequence[Event]]:
        if isinstance(event, Data):
            return held.append((event.time, event.value)), ()
        made, rest = batches([event.time], held)
        if not made[0].value:
            return held, (event,)
        return Log(rest) if rest else empty, (*made, event)

    def finish(held: Log[tuple[Any, Any]]) -> Iterable[Event]:
        made, _ = batches(maximal(time for time, _ in held), held)
        return made

    def is_blank(held: Log[tuple[Any, Any]]) -> bool:
        return not held and not initial

    return Operator(
        initial,
        step,
        finish,
        is_idle=operator.not_,
        is_blank=is_blank,
        due=least_time,
        awaits=lambda held: [time for time, _ in held],
        is_awake=bool(initial),
        snapshot=batch_snapshot,
        emits=pairs_of,
    )


def least_time(held: Iterable[tuple[Any, Any]]) -> Any:
    """The least buffered time."""
    return min(time for time, _ in held)


def batch_snapshot(time: Any, value: Any) -> SnapshotCodec:
    """The buffer, in order of arrival."""
    return SnapshotCodec(pairs_of(time, value), tuple, Log)
