"""Running aggregates: the newest result for each key, after each event or once per epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cutwater.events import Data, Event
from cutwater.operators.aggregates import Aggregate
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import SnapshotCodec, row_of

__all__ = ["MakeRecord", "add_to", "aggregate", "aggregate_snapshot", "results_of", "zeros"]

MakeRecord = Callable[..., Any]
"""``(key, *results) -> record``."""


def zeros(aggregates: Sequence[Aggregate]) -> tuple[Any, ...]:
    """The state of each aggregate before the first value."""
    return tuple(a.zero for a in aggregates)


def add_to(aggregates: Sequence[Aggregate], kept: Sequence[Any], value: Any) -> tuple[Any, ...]:
    """The state of each aggregate after one more value."""
    return tuple(a.add(k, a.value_of(value)) for a, k in zip(aggregates, kept, strict=True))


def results_of(aggregates: Sequence[Aggregate], kept: Sequence[Any]) -> list[Any]:
    """The result of each aggregate."""
    return [a.result(k) for a, k in zip(aggregates, kept, strict=True)]


def aggregate(
    aggregates: Sequence[Aggregate], make: MakeRecord, *, emit: str = "event"
) -> Operator:
    """Keeps aggregates over all events so far and emits them as ``make(key, *results)``.

    With ``emit="event"`` it emits after each event, at its time; with ``emit="epoch"`` once at the
    end of each epoch with events, at the time of the last of them. The end of the input counts as a
    barrier. A watermark in the middle of an epoch, which only simulated inputs have, may overtake
    an output that is held until the barrier.

    Keeps one value per aggregate and key for ever.

    Laws
    ----
    The last output of an epoch is the aggregate over all inputs so far, whichever `emit`.

    Examples
    --------
    >>> from cutwater.operators import aggregates as agg, produce
    >>> op = aggregate([agg.sum()], lambda key, total: total)
    >>> list(produce(op, [Data(1, 10), Data(2, 5)]))
    [Data(time=1, value=10), Data(time=2, value=15)]
    """
    empty = zeros(aggregates)

    def start(key: Any) -> Any:
        return key, empty, None

    def shown(state: Any, time: Any) -> list[Event]:
        return [Data(time, make(state[0], *results_of(aggregates, state[1])))]

    def step(state: Any, event: Event) -> tuple[Any, Sequence[Event]]:
        if not isinstance(event, Data):
            return state, (event,)
        key, kept, _ = state
        kept = add_to(aggregates, kept, event.value)
        if emit == "event":
            state = (key, kept, None)
            return state, shown(state, event.time)
        return (key, kept, (event.time,)), ()

    def barrier(state: Any) -> tuple[Any, Sequence[Event]]:
        key, kept, touched = state
        if touched is None:
            return state, ()
        return (key, kept, None), shown(state, touched[0])

    def finish(state: Any) -> Sequence[Event]:
        return barrier(state)[1]

    return Operator(
        start(None),
        step,
        finish,
        start=start,
        barrier=barrier if emit == "epoch" else None,
        is_idle=lambda _state: True,
    )


def aggregate_snapshot(key: Any, kept: Sequence[Any]) -> SnapshotCodec:
    """The key and the state of each aggregate; at the end of an epoch no output is pending."""
    return SnapshotCodec(
        row_of(key, row_of(*kept)),
        lambda state: (state[0], state[1]),
        lambda kept: (kept[0], kept[1], None),
    )
