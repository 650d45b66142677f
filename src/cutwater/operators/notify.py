"""Notifications that a time is complete (P3's notification requests, section 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cutwater.annotations import union_of
from cutwater.errors import InputError, Problem
from cutwater.events import Data, Event
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import SnapshotCodec, many_of, row_of
from cutwater.operators.task import check_result, fresh_copies
from cutwater.ordering import canonical
from cutwater.times import maximal, minimal

__all__ = ["Notify", "on_complete", "on_complete_snapshot"]


@dataclass(frozen=True, slots=True)
class Notify:
    """An output that requests a notification when a time is complete."""

    time: Any


def on_complete(
    receive: Callable[[Any, Any, Any], tuple[Any, Sequence[Any]]],
    complete: Callable[[Any, Any], tuple[Any, Sequence[Any]]],
    initial: Any,
    *,
    requests: Iterable[Any] = (),
    name: str = "on_complete",
) -> Operator:
    """Calls `complete` once for each requested time, after all events at or before it.

    ``receive(state, time, value)`` and ``complete(state, time)`` return a state and a list of
    outputs; a `Notify` among the outputs requests a time at or above the current one (P3,
    Condition 1; from `complete` a strictly larger one), or `InputError` is raised. `requests` are
    made before the first event (P3's ``Initial(p)``). Minimal times come first, incomparable ones
    in the order of their canonical bytes: a request made by `complete` is never delivered before
    an earlier one that is due. The end of the input completes all pending requests; later requests
    beyond them are not delivered.

    Keeps the state and the requested times until they are complete; None as state deletes both
    once nothing is requested.

    Laws
    ----
    Outputs of `complete` have its time, so monotone streams stay monotone; watermarks pass
    through, so productive streams stay productive.

    Examples
    --------
    >>> from cutwater.events import Watermark
    >>> from cutwater.operators import produce
    >>> op = on_complete(lambda n, t, v: (n + 1, [Notify(t)]), lambda n, t: (n, [n]), 0)
    >>> list(produce(op, [Data(1, "a"), Data(1, "b"), Watermark(1)]))
    [Data(time=1, value=2), Watermark(time=1)]
    """
    fresh = fresh_copies(initial)
    first = tuple(dict.fromkeys(requests))

    def kept_as(state: Any, requests: Sequence[Any]) -> Any:
        is_nothing = state is None and not requests and not first  # or `first` would repeat
        return None if is_nothing else (state, tuple(requests))

    def emit(time: Any, outputs: Iterable[Any], requests: list[Any], is_due: bool) -> list[Event]:
        emitted: list[Event] = []
        for output in outputs:
            if not isinstance(output, Notify):
                emitted.append(Data(time, output))
                continue
            if not time <= output.time or (is_due and time == output.time):
                raise _into_the_past(name, output.time, time)
            if output.time not in requests:
                requests.append(output.time)
        return emitted

    def deliver(kept: Any, limits: Sequence[Any]) -> tuple[Any, list[Event]]:
        state, requests = kept[0], list(kept[1])
        emitted: list[Event] = []
        while due := [t for t in requests if any(t <= limit for limit in limits)]:
            time = _next(due)
            requests.remove(time)
            state, outputs = check_result(complete(_or(state, fresh), time), name)
            emitted += emit(time, outputs, requests, is_due=True)
        return kept_as(state, requests), emitted

    def step(kept: Any, event: Event) -> tuple[Any, Sequence[Event]]:
        state, requests = (None, ()) if kept is None else kept
        if not isinstance(event, Data):
            if kept is None:
                return kept, (event,)
            kept, emitted = deliver(kept, [event.time])
            return kept, [*emitted, event]
        result = receive(_or(state, fresh), event.time, event.value)
        state, outputs = check_result(result, name)
        asked = list(requests)
        emitted = emit(event.time, outputs, asked, is_due=False)
        return kept_as(state, asked), emitted

    def finish(kept: Any) -> Iterable[Event]:
        return () if kept is None else deliver(kept, maximal(kept[1]))[1]

    return Operator(
        (None, first) if first else None,
        step,
        finish,
        is_idle=lambda kept: kept is None or not kept[1],
        due=lambda kept: min(kept[1]),
        awaits=lambda kept: () if kept is None else kept[1],
        is_blank=lambda kept: kept is None,
        is_awake=bool(first),
    )


def _next(due: Sequence[Any]) -> Any:
    """A minimal one of the times due; the choice among several is deterministic."""
    times = minimal(due)
    if len(times) == 1:
        return times[0]
    try:
        return min(times, key=canonical)
    except InputError:  # a user's class without canonical bytes: request order
        return times[0]


def _or(state: Any, fresh: Callable[[], Any]) -> Any:
    return fresh() if state is None else state


def _into_the_past(name: str, asked: Any, time: Any) -> InputError:
    return InputError(
        Problem(
            "notification-in-the-past",
            f"'{name}' asked at time {time!r} to be notified of {asked!r}; a request is for a "
            "later time",
            "ask for the time of the event or a larger one, and while being notified for a "
            "strictly larger one",
        )
    )


def on_complete_snapshot(time: Any, state: Any) -> SnapshotCodec:
    """The state (None if deleted while times are still requested) and the requested times."""
    return SnapshotCodec(row_of(union_of([state, type(None)]), many_of(time)))
