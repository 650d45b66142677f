"""Dataflow graphs, messages and processors (P3, section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from cutwater.errors import FlowError, Problem
from cutwater.progress.graph import Edge, Graph
from cutwater.times import rounds_of

__all__ = [
    "Dataflow",
    "History",
    "LocalResult",
    "Message",
    "Notified",
    "Processor",
    "Reaction",
    "Received",
    "TimelyEvent",
    "buffer",
    "is_buffer",
    "local_result",
    "precedes",
    "reaction",
]


def precedes(t: Any, u: Any) -> bool:
    """Is ``t <= u``? Times of different domains are not; neither are times in different loops.

    >>> from cutwater.times import Product
    >>> precedes(1, 2), precedes(1, "noon"), precedes(Product(1, (0,)), Product(1, (0, 1)))
    (True, False, False)
    """
    if len(rounds_of(t)) != len(rounds_of(u)):
        return False
    try:
        return bool(t <= u)
    except TypeError:
        return False


class Message(msgspec.Struct, frozen=True, cache_hash=True):
    """A message (P3: m, with time(m))."""

    time: Any
    value: Any = None
    """What it carries; hashable."""


class Received(msgspec.Struct, frozen=True, cache_hash=True):
    """The event of a message on an incoming edge (P3: (d, m))."""

    edge: str
    message: Message

    @property
    def time(self) -> Any:
        """The time of the message."""
        return self.message.time


class Notified(msgspec.Struct, frozen=True, cache_hash=True):
    """The event of a notification (P3: t)."""

    time: Any


TimelyEvent = Received | Notified


class Reaction(msgspec.Struct, frozen=True):
    """What a processor does on an event (P3: (s', N, ⟨e₁ ↦ μ₁, …⟩))."""

    state: Any
    """The next local state; hashable."""
    requests: frozenset[Any] = frozenset()
    """Times it asks to be notified of."""
    sent: tuple[tuple[str, tuple[Message, ...]], ...] = ()
    """Outgoing edges with the messages that are sent along them; nothing along the others."""


def reaction(
    state: Any, sent: Mapping[str, Sequence[Message]] | None = None, requests: Iterable[Any] = ()
) -> Reaction:
    """A reaction, with the messages by edge.

    >>> reaction("s", {"out": [Message(3)]}, requests=[4]).requests
    frozenset({4})
    """
    along = tuple((edge, tuple(messages)) for edge, messages in (sent or {}).items() if messages)
    return Reaction(state, frozenset(requests), along)


@dataclass(frozen=True)
class Processor:
    """A node and its behaviour (P3: p, g₁(p), Initial(p))."""

    name: str
    g1: Callable[[Any, TimelyEvent], Reaction]
    """``(state, event) -> reaction``; pure."""
    initial: tuple[tuple[Any, frozenset[Any]], ...] = ((None, frozenset()),)
    """The states it may start in, each with its initial notification requests."""


@dataclass(frozen=True, eq=False)
class Dataflow:
    """A graph of processors over a finite set of times and messages; compared by identity.

    Raises `FlowError` for what `Graph` refuses, and for an edge that names no processor.
    """

    processors: tuple[Processor, ...]
    edges: tuple[Edge, ...]
    """Their summaries are claims about their sources; the model itself uses g₁."""
    times: tuple[Any, ...]
    """T, finite: all times at which anything may happen."""
    messages: tuple[Message, ...]
    """M, finite: all messages that may come along any edge."""

    def __post_init__(self) -> None:
        unknown = set(self.graph.nodes) - {processor.name for processor in self.processors}
        if unknown:
            raise FlowError(
                Problem(
                    "unknown-processor",
                    f"edges name {', '.join(sorted(unknown))}, and there is no such processor",
                    "name both ends of an edge after processors, or leave one open",
                )
            )

    @cached_property
    def graph(self) -> Graph:
        """Locations with the claimed summaries: could-result-in, conservatively."""
        return Graph(self.edges, nodes=(processor.name for processor in self.processors))

    @cached_property
    def number(self) -> dict[str, int]:
        """The index of each processor, by name."""
        return {processor.name: i for i, processor in enumerate(self.processors)}

    @cached_property
    def edge_number(self) -> dict[str, int]:
        """The index of each edge, by name."""
        return {edge.name: i for i, edge in enumerate(self.edges)}

    @cached_property
    def inputs(self) -> tuple[Edge, ...]:
        """I: the edges without a source."""
        return tuple(edge for edge in self.edges if edge.source is None)

    @cached_property
    def outputs(self) -> tuple[Edge, ...]:
        """O: the edges without a target."""
        return tuple(edge for edge in self.edges if edge.target is None)

    @cached_property
    def internal(self) -> tuple[Edge, ...]:
        """E: the edges between two nodes."""
        return tuple(edge for edge in self.edges if edge.source and edge.target)

    def incoming(self, node: str) -> tuple[Edge, ...]:
        """The edges that a node reads."""
        return tuple(edge for edge in self.edges if edge.target == node)

    def outgoing(self, node: str) -> tuple[Edge, ...]:
        """The edges that a node writes."""
        return tuple(edge for edge in self.edges if edge.source == node)

    def events(self, node: str) -> list[TimelyEvent]:
        """Everything that could happen to a node, whether or not it will in this graph."""
        received = [Received(e.name, m) for e in self.incoming(node) for m in self.messages]
        return [*received, *map(Notified, self.times)]


@dataclass(frozen=True)
class History:
    """The order in which a node consumed events (P3: ⟨⟨(s, N), x₁, …, xₙ⟩⟩)."""

    state: Any
    """The state it started in."""
    requests: frozenset[Any]
    """Its initial notification requests."""
    events: tuple[TimelyEvent, ...] = ()


@dataclass(frozen=True)
class LocalResult:
    """What a local history leads to (P3: Π_Loc, Π_NR and Π_e)."""

    state: Any
    requests: frozenset[Any]
    """The pending notification requests."""
    sent: Mapping[str, tuple[Message, ...]]
    """All messages so far, for every edge that was written."""


def local_result(processor: Processor, history: History) -> LocalResult:
    """g(p): the state, the pending requests and all messages sent after a local history."""
    state, requests = history.state, history.requests
    sent: dict[str, tuple[Message, ...]] = {}
    for event in history.events:
        done = processor.g1(state, event)
        delivered = {event.time} if isinstance(event, Notified) else set()
        state, requests = done.state, requests - delivered | done.requests
        for edge, messages in done.sent:
            sent[edge] = (*sent.get(edge, ()), *messages)
    return LocalResult(state, requests, sent)


def buffer(name: str, outgoing: str) -> Processor:
    """A buffer node: a relay from its one incoming edge to its one outgoing edge."""

    def relay(state: Any, event: TimelyEvent) -> Reaction:
        if isinstance(event, Notified):
            return reaction(state)
        return reaction(state, {outgoing: [event.message]})

    return Processor(name, relay)


def is_buffer(dataflow: Dataflow, node: str) -> bool:
    """Is a node a buffer by P3's definition, in the states it may start in?"""
    incoming, outgoing = dataflow.incoming(node), dataflow.outgoing(node)
    if len(incoming) != 1 or len(outgoing) != 1:
        return False
    processor = dataflow.processors[dataflow.number[node]]

    def relayed(state: Any, event: TimelyEvent) -> Reaction:
        sent = [event.message] if isinstance(event, Received) else []
        return reaction(state, {outgoing[0].name: sent})

    return all(
        processor.g1(state, event) == relayed(state, event)
        for state, _ in processor.initial
        for event in dataflow.events(node)
    )
