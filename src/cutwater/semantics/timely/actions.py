"""The actions of a timely dataflow graph (P3, section 4.2): Mess, Not, Inp and Outp."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from cutwater.semantics.timely.dataflow import (
    Dataflow,
    Message,
    Notified,
    Received,
    TimelyEvent,
    precedes,
)

__all__ = [
    "ClockOf",
    "Configuration",
    "Pointstamp",
    "change_inputs",
    "change_outputs",
    "initial_configurations",
    "is_subsequence",
    "notify",
    "pointstamps",
    "receive",
]

Pointstamp = tuple[str, Any]
"""A location and a time."""


class Configuration(msgspec.Struct, frozen=True, cache_hash=True):
    """A state of the whole graph."""

    states: tuple[Any, ...]
    """LocState: the local state of each processor, in the order of the dataflow."""
    requests: tuple[frozenset[Any], ...]
    """NotRequests: for each processor the notifications it waits for."""
    queues: tuple[tuple[Message, ...], ...]
    """Q: the messages on each edge, oldest first, in the order of the dataflow."""


ClockOf = Callable[[Configuration], Container[Pointstamp]]
"""The pointstamps at which work may remain: P3's Clock, as a parameter (§4.3)."""


def initial_configurations(
    dataflow: Dataflow, inputs: Mapping[str, Sequence[Message]]
) -> list[Configuration]:
    """InitProp: queues are empty but for the inputs; every choice of Initial(p)."""
    queues = tuple(tuple(inputs.get(edge.name, ())) for edge in dataflow.edges)
    chosen: list[tuple[tuple[Any, frozenset[Any]], ...]] = [()]
    for processor in dataflow.processors:
        chosen = [(*before, start) for before in chosen for start in processor.initial]
    return [
        Configuration(tuple(s for s, _ in starts), tuple(n for _, n in starts), queues)
        for starts in chosen
    ]


def pointstamps(dataflow: Dataflow, c: Configuration) -> list[Pointstamp]:
    """The multiset of pointstamps of messages and requests."""
    found: list[Pointstamp] = []
    for edge, queue in zip(dataflow.edges, c.queues, strict=True):
        found += [(edge.name, message.time) for message in queue]
    for processor, times in zip(dataflow.processors, c.requests, strict=True):
        found += [(processor.name, time) for time in times]
    return found


def receive(
    dataflow: Dataflow, c: Configuration, edge: str, position: int = 0
) -> Configuration | None:
    """Action Mess: the target of an edge dequeues a message and reacts to it.

    At another position than the head it is the variant with reorderings: any message with none
    ahead of it at a time that is less or equal.
    """
    # PREMISE: Q(e) = u · m · v, and no n in u has time(n) <= time(m)
    number = dataflow.edge_number[edge]
    target, queue = dataflow.edges[number].target, c.queues[number]
    if target is None or not 0 <= position < len(queue):
        return None
    message = queue[position]
    if any(precedes(ahead.time, message.time) for ahead in queue[:position]):
        return None
    # STATE
    queues = _replaced(c.queues, number, (*queue[:position], *queue[position + 1 :]))
    dequeued = Configuration(c.states, c.requests, queues)
    # RESULT
    return _react(dataflow, dequeued, target, Received(edge, message))


def notify(
    dataflow: Dataflow, c: Configuration, node: str, time: Any, clock: Container[Pointstamp]
) -> Configuration | None:
    """Action Not: a node gets a requested notification once nothing up to its time can arrive."""
    # PREMISE: t is requested, and (e, t) is not in Clock for any incoming edge e
    number = dataflow.number[node]
    if time not in c.requests[number]:
        return None
    if any((edge.name, time) in clock for edge in dataflow.incoming(node)):
        return None
    # STATE
    requests = _replaced(c.requests, number, c.requests[number] - {time})
    delivered = Configuration(c.states, requests, c.queues)
    # RESULT
    return _react(dataflow, delivered, node, Notified(time))


def change_inputs(
    dataflow: Dataflow, c: Configuration, queues: Mapping[str, Sequence[Message]]
) -> Configuration | None:
    """Action Inp: input edges are extended from outside, anywhere in their queues."""
    # PREMISE: only inputs change, and Q(i) is a subsequence of Q'(i)
    names = {edge.name for edge in dataflow.inputs}
    for name, queue in queues.items():
        if name not in names or not is_subsequence(c.queues[dataflow.edge_number[name]], queue):
            return None
    # STATE, RESULT
    return _with_queues(dataflow, c, queues)


def change_outputs(
    dataflow: Dataflow, c: Configuration, queues: Mapping[str, Sequence[Message]]
) -> Configuration | None:
    """Action Outp: messages on output edges are removed from outside, in any order."""
    # PREMISE: only outputs change, and Q'(o) is a subsequence of Q(o)
    names = {edge.name for edge in dataflow.outputs}
    for name, queue in queues.items():
        if name not in names or not is_subsequence(queue, c.queues[dataflow.edge_number[name]]):
            return None
    # STATE, RESULT
    return _with_queues(dataflow, c, queues)


def _react(dataflow: Dataflow, c: Configuration, node: str, event: TimelyEvent) -> Configuration:
    """The common part of Mess2 and Not2: apply g₁, then its sends and requests."""
    number = dataflow.number[node]
    done = dataflow.processors[number].g1(c.states[number], event)
    queues = c.queues
    for name, messages in done.sent:
        at = dataflow.edge_number[name]
        assert dataflow.edges[at].source == node, f"{node} does not write {name}"
        queues = _replaced(queues, at, (*queues[at], *messages))
    return Configuration(
        _replaced(c.states, number, done.state),
        _replaced(c.requests, number, c.requests[number] | done.requests),
        queues,
    )


def _replaced(items: tuple[Any, ...], at: int, item: Any) -> tuple[Any, ...]:
    return (*items[:at], item, *items[at + 1 :])


def _with_queues(
    dataflow: Dataflow, c: Configuration, queues: Mapping[str, Sequence[Message]]
) -> Configuration:
    changed = tuple(
        tuple(queues.get(edge.name, queue))
        for edge, queue in zip(dataflow.edges, c.queues, strict=True)
    )
    return Configuration(c.states, c.requests, changed)


def is_subsequence(part: Iterable[Any], whole: Iterable[Any]) -> bool:
    """Is a sequence a subsequence of another?

    >>> is_subsequence("ac", "abc"), is_subsequence("ca", "abc"), is_subsequence("", "")
    (True, False, True)
    """
    rest = iter(whole)
    return all(any(item == other for other in rest) for item in part)
