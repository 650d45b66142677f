"""Processing several events at once (P4, section 3.1)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cutwater.annotations import element_of, signature_of
from cutwater.events import Data, Event, Watermark
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import SnapshotCodec, pairs_of

__all__ = ["bulk", "bulk_values", "bulk_values_snapshot"]


def bulk(
    f: Callable[[Sequence[Any]], Sequence[Any]], n: int, buffer: Iterable[Any] = ()
) -> Operator:
    """Buffers `n` events, then emits the result of `f` on them, newest first.

    At the end of the input `f` gets the remaining events, even if there are none (P4: ``bulk_op``).

    Laws
    ----
    For a finite `xs` and an empty buffer, the output is that of `f` on every run of `n` events,
    each run newest first, followed by `f` on the remainder.

    Examples
    --------
    >>> from cutwater.operators import produce
    >>> list(produce(bulk(lambda run: ["".join(run)], 2), "abcde"))
    ['ba', 'dc', 'e']
    """
    initial = tuple(buffer)

    def step(state: tuple[Any, ...], event: Any) -> tuple[Any, Sequence[Any]]:
        held = (event, *state)
        return (held, ()) if len(held) < n else ((), f(held))

    return Operator(initial, step, f)


def bulk_values(
    f: Callable[[list[Any]], Iterable[Any]], n: int, buffer: Iterable[tuple[Any, Any]] = ()
) -> Operator:
    """`bulk` over the data of a stream: ``f(values)`` for each run of `n`, newest first.

    Outputs have the time of the newest value of the run. A run is cut short if a watermark
    completes that time before the run is full, or at the end of the input. `buffer` holds times and
    values that are buffered from the start, newest first. Watermarks pass through.

    Laws
    ----
    On data it is ``bulk(g, n)``, where `g` applies `f` to the values of a run and stamps the
    results with the time of the newest; an empty run emits nothing. Monotone and productive
    streams stay so.

    Examples
    --------
    >>> from cutwater.operators import produce
    >>> list(produce(bulk_values(lambda run: [sum(run)], 2), [Data(1, 5), Data(2, 7), Data(3, 1)]))
    [Data(time=2, value=12), Data(time=3, value=1)]
    """

    def run_of(events: Sequence[Data]) -> list[Data]:
        values = [event.value for event in events]
        return [Data(events[0].time, output) for output in f(values)] if events else []

    inner = bulk(run_of, n, (Data(time, value) for time, value in buffer))

    def step(held: Any, event: Event) -> tuple[Any, Sequence[Event]]:
        if not isinstance(event, Watermark):
            return inner.step(held, event)
        if held and held[0].time <= event.time:
            return (), [*run_of(held), event]
        return held, (event,)

    return Operator(
        inner.initial,
        step,
        inner.finish,
        is_idle=operator.not_,
        due=lambda held: held[0].time,
        awaits=lambda held: [event.time for event in held[:1]],
        is_blank=lambda held: not held and not inner.initial,
        is_awake=bool(inner.initial),
        snapshot=bulk_values_snapshot,
        emits=lambda _time, _value: element_of(signature_of(f).result),
    )


def bulk_values_snapshot(time: Any, value: Any) -> SnapshotCodec:
    """The buffer, newest first."""
    return SnapshotCodec(
        pairs_of(time, value),
        lambda held: tuple((event.time, event.value) for event in held),
        lambda kept: tuple(Data(time, value) for time, value in kept),
    )
