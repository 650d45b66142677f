"""Accumulation: batches that include all earlier ones (P4, sections 4.2 and 4.4)."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from cutwater.events import Data, Event, Watermark
from cutwater.operators.batch import batch
from cutwater.operators.compose import compose
from cutwater.operators.log import Log
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import SnapshotCodec, pairs_of, row_of
from cutwater.operators.stateless import keeps_nothing, same_values

__all__ = ["accumulate", "accumulate_snapshot", "incr_batch", "incr_batch_snapshot"]


def accumulate(batches: Iterable[tuple[Any, Any]] = ()) -> Operator:
    """Appends each batch to all earlier ones; emits the result once for each time in the new one.

    The times come in order of first occurrence. Earlier batches are never inspected, so an output
    at `t` may contain times that are not ``<= t`` (P4: ``incr_op``).

    Keeps every batch for ever.

    Laws
    ----
    (14) each output is the initial batches followed by those of a prefix of the input, and its
    time occurs there; (15) every time of every batch gets an output; (16) monotone streams stay
    monotone if each batch at `w` has only times ``<= w`` that were not completed before;
    (17) productive streams stay productive if each batch is not empty, has only times ``<= w``
    and is followed by the watermark `w`.

    Examples
    --------
    >>> from cutwater.operators import produce
    >>> list(produce(accumulate([(0, "a")]), [Data(2, ((1, "b"),))]))
    [Data(time=1, value=((0, 'a'), (1, 'b')))]
    """
    initial = tuple(batches)

    def step(state: tuple[Any, ...], event: Event) -> tuple[Any, Sequence[Event]]:
        if isinstance(event, Watermark):
            return state, (event,)
        whole = (*state, *event.value)
        return whole, [Data(time, whole) for time in dict.fromkeys(t for t, _ in event.value)]

    return Operator(
        initial,
        step,
        is_idle=keeps_nothing,
        is_blank=operator.not_,
        snapshot=lambda _time, batch: accumulate_snapshot(batch),
        emits=same_values,
    )


def incr_batch(
    pending: Iterable[tuple[Any, Any]] = (), batches: Iterable[tuple[Any, Any]] = ()
) -> Operator:
    """`batch`, then `accumulate`: for each completed time, everything completed so far.

    Laws
    ----
    (18) and (19) monotone and productive streams stay so; (20) an output at `t` contains the
    complete collections of all times ``<= t``; (21) every input's time gets an output.

    Examples
    --------
    >>> from cutwater.operators import produce
    >>> list(produce(incr_batch(), [Data(1, "a"), Watermark(1), Data(2, "b")]))[-1]
    Data(time=2, value=((1, 'a'), (2, 'b')))
    """
    return compose(batch(pending), accumulate(batches))


def accumulate_snapshot(batch: Any) -> SnapshotCodec:
    """All batches, concatenated; `batch` is the type of a batch."""
    return SnapshotCodec(batch)


def incr_batch_snapshot(time: Any, value: Any) -> SnapshotCodec:
    """The pending pairs, and the completed ones."""
    pairs = pairs_of(time, value)
    return SnapshotCodec(
        row_of(pairs, pairs),
        lambda state: (tuple(state[0]), state[1]),
        lambda kept: (Log(kept[0]), kept[1]),
    )
