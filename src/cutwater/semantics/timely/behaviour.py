"""What processors do, whatever their surroundings: Definitions 1 and 3 of P3.

Both look at the states a processor can be in after some local history, and at every event in them.
They are computed by trying all of these, so processors must be finite.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from cutwater.errors import InputError, Problem
from cutwater.semantics.timely.actions import Pointstamp
from cutwater.semantics.timely.dataflow import Dataflow, Notified, Processor, TimelyEvent

__all__ = ["Request", "one_step", "requested"]

_MOST_STATES = 10_000
"""A processor with more local states counts as infinite."""
_S = TypeVar("_S", bound=Hashable)


@dataclass(frozen=True)
class Request:
    """A new request that a processor makes on an event (Definition 3, at its tightest)."""

    node: str
    event: TimelyEvent
    time: Any
    """What it asks to be notified of."""


def one_step(dataflow: Dataflow) -> dict[Pointstamp, frozenset[Pointstamp]]:
    """Definition 1: (p, t) ⤳¹ (d, t') if an event at t may make p send a message at t' on d."""
    found: dict[Pointstamp, set[Pointstamp]] = {}
    for processor in dataflow.processors:
        events = dataflow.events(processor.name)
        for state in _states(dataflow, processor):
            for event in events:
                for edge, messages in processor.g1(state, event).sent:
                    times = {(edge, message.time) for message in messages}
                    found.setdefault((processor.name, event.time), set()).update(times)
    return {stamp: frozenset(there) for stamp, there in found.items()}


def requested(dataflow: Dataflow) -> list[Request]:
    """Definition 3: the requests N − N₁ that processors make on events.

    (p, t) ⤳_N (p, t') if one of them is on an event at some time ``>= t``, for a time ``<= t'``.
    """
    found: dict[Request, None] = {}
    for processor in dataflow.processors:
        events = dataflow.events(processor.name)

        def after(
            pair: tuple[Any, frozenset[Any]], event: TimelyEvent, processor: Processor = processor
        ) -> tuple[Any, frozenset[Any]]:
            done = processor.g1(pair[0], event)
            delivered = {event.time} if isinstance(event, Notified) else set()
            return done.state, pair[1] - delivered | done.requests

        for state, standing in _reachable(processor, processor.initial, events, after):
            for event in events:
                for time in processor.g1(state, event).requests - standing:
                    found[Request(processor.name, event, time)] = None
    return list(found)


def _states(dataflow: Dataflow, processor: Processor) -> list[Any]:
    """The local states that some history leads to."""
    starts = dict.fromkeys(state for state, _ in processor.initial)
    events = dataflow.events(processor.name)
    return _reachable(processor, starts, events, lambda s, event: processor.g1(s, event).state)


def _reachable(
    processor: Processor,
    starts: Iterable[_S],
    events: list[TimelyEvent],
    after: Callable[[_S, TimelyEvent], _S],
) -> list[_S]:
    found = dict.fromkeys(starts)
    todo = list(found)
    while todo:
        state = todo.pop()
        for there in (after(state, event) for event in events):
            if there not in found:
                found[there] = None
                todo.append(there)
        if len(found) > _MOST_STATES:
            raise InputError(
                Problem(
                    "too-many-local-states",
                    f"{processor.name!r} has more than {_MOST_STATES:,} local states; "
                    "could-result-in is found by trying all of them",
                    "bound what it keeps, or use the summaries of its edges",
                )
            )
    return list(found)
