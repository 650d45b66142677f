"""P3's specification as a model: every order in which messages and notifications may come."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from cutwater.semantics.timely.actions import (
    ClockOf,
    Configuration,
    Pointstamp,
    change_inputs,
    change_outputs,
    initial_configurations,
    notify,
    receive,
)
from cutwater.semantics.timely.clock import Clock
from cutwater.semantics.timely.dataflow import Dataflow, Message, precedes
from cutwater.semantics.timely.relation import could_result_in

__all__ = ["Input", "Late", "Move", "Notify", "Output", "Point", "Receive", "TimelyModel"]


class Receive(msgspec.Struct, frozen=True):
    """The target of an edge dequeues a message (Mess)."""

    edge: str
    position: int = 0


class Notify(msgspec.Struct, frozen=True):
    """A node gets a notification (Not)."""

    node: str
    time: Any


class Input(msgspec.Struct, frozen=True):
    """A message is added to an input edge from outside (Inp)."""

    edge: str
    message: Message


class Output(msgspec.Struct, frozen=True):
    """A message is removed from an output edge from outside (Outp)."""

    edge: str
    position: int = 0


Move = Receive | Notify | Input | Output


class Late(msgspec.Struct, frozen=True):
    """A message on an edge at a time that had left the clock: Theorem 2 does not hold."""

    edge: str
    message: Message
    left: Any
    """The time that had left the clock of this edge."""


class Point(msgspec.Struct, frozen=True, cache_hash=True):
    """A configuration, and what Theorem 2 needs of the past."""

    configuration: Configuration
    arriving: tuple[tuple[str, Message], ...]
    """What may still be added to input edges."""
    left: frozenset[Pointstamp]
    """The pointstamps of edges that were once outside the clock. While the clock only shrinks
    (Proposition 8) these are all that are outside it, so they add no states."""


class TimelyModel:
    """All behaviours of a dataflow from given inputs (P3: ISpec).

    Parameters
    ----------
    dataflow, inputs
        The dataflow to explore, and the initial messages on its input edges.
    clock
        Where work may remain; P3's by default. It is a parameter, as in §4.3.
    is_reordering
        Whether a processor may take any minimal message of a queue (§4.2's variant).
    arriving
        Messages that Inp may add, each once, at any moment: at the end of its edge.
    is_guarded
        Whether Inp is constrained by ``Clock' ⊆ Clock``, as P3 suggests.
    has_outputs
        Whether Outp removes messages.

    Examples
    --------
    >>> from cutwater.progress import Edge
    >>> from cutwater.semantics.timely.dataflow import buffer
    >>> relay = Dataflow(
    ...     (buffer("relay", "out"),),
    ...     (Edge("in", None, "relay"), Edge("out", "relay", None)),
    ...     times=(1, 2), messages=(Message(1), Message(2)),
    ... )
    >>> model = TimelyModel(relay, {"in": [Message(2), Message(1)]})
    >>> [start] = model.initial_states()
    >>> model.actions(start)
    [Receive(edge='in', position=0)]
    """

    def __init__(
        self,
        dataflow: Dataflow,
        inputs: Mapping[str, Sequence[Message]] | None = None,
        *,
        clock: ClockOf | None = None,
        is_reordering: bool = False,
        arriving: Sequence[tuple[str, Message]] = (),
        is_guarded: bool = False,
        has_outputs: bool = False,
    ) -> None:
        self.dataflow, self.inputs = dataflow, dict(inputs or {})
        self.clock = clock or Clock(dataflow, could_result_in(dataflow))
        self.is_reordering, self.is_guarded = is_reordering, is_guarded
        self.arriving, self.has_outputs = tuple(arriving), has_outputs

    def initial_states(self) -> Iterable[Point]:
        """The points at which everything starts: one for each choice of initial states."""
        return [
            Point(c, self.arriving, self._outside(c))
            for c in initial_configurations(self.dataflow, self.inputs)
        ]

    def actions(self, state: Point) -> list[Move]:
        """The possible moves: messages, then notifications, then changes from outside."""
        c = state.configuration
        candidates: list[Move] = []
        for edge, queue in zip(self.dataflow.edges, c.queues, strict=True):
            most = len(queue) if self.is_reordering else min(1, len(queue))
            candidates += [Receive(edge.name, i) for i in range(most)]
        for processor, times in zip(self.dataflow.processors, c.requests, strict=True):
            candidates += [Notify(processor.name, t) for t in self.dataflow.times if t in times]
        candidates += [Input(*added) for added in dict.fromkeys(state.arriving)]
        if self.has_outputs:
            candidates += [
                Output(edge.name, i)
                for edge in self.dataflow.outputs
                for i in range(len(c.queues[self.dataflow.edge_number[edge.name]]))
            ]
        return [move for move in candidates if self._after(c, move) is not None]

    def step(self, state: Point, action: Move) -> Point:
        """The point after a move."""
        there = self._after(state.configuration, action)
        if there is None:
            raise ValueError(f"{action!r} is not possible here")
        arriving = list(state.arriving)
        if isinstance(action, Input):
            arriving.remove((action.edge, action.message))
        return Point(there, tuple(arriving), state.left | self._outside(there))

    def observation(self, state: Point) -> Hashable:
        """The externally visible state: the queues of input and output edges."""
        numbers = self.dataflow.edge_number
        return tuple(
            (edge.name, state.configuration.queues[numbers[edge.name]])
            for edge in (*self.dataflow.inputs, *self.dataflow.outputs)
        )

    def late(self, state: Point) -> Late | None:
        """A message at a time that had left the clock; by Theorem 2 there is none."""
        for edge, queue in zip(self.dataflow.edges, state.configuration.queues, strict=True):
            for message in queue:
                for t in self.dataflow.times:
                    if (edge.name, t) in state.left and precedes(message.time, t):
                        return Late(edge.name, message, t)
        return None

    def _after(self, c: Configuration, move: Move) -> Configuration | None:
        match move:
            case Receive(edge, position):
                return receive(self.dataflow, c, edge, position)
            case Notify(node, time):
                return notify(self.dataflow, c, node, time, self.clock(c))
            case Input(edge, message):
                queue = (*c.queues[self.dataflow.edge_number[edge]], message)
                there = change_inputs(self.dataflow, c, {edge: queue})
                return there if there and self._is_allowed(c, there) else None
            case Output(edge, position):
                queue = c.queues[self.dataflow.edge_number[edge]]
                rest = (*queue[:position], *queue[position + 1 :])
                return change_outputs(self.dataflow, c, {edge: rest})

    def _is_allowed(self, c: Configuration, there: Configuration) -> bool:
        """If inputs are guarded: does this one not make the clock grow?"""
        if not self.is_guarded:
            return True
        before, after = self.clock(c), self.clock(there)
        return all(stamp in before or stamp not in after for stamp in self._stamps)

    def _outside(self, c: Configuration) -> frozenset[Pointstamp]:
        clock = self.clock(c)
        return frozenset(stamp for stamp in self._stamps if stamp not in clock)

    @cached_property
    def _stamps(self) -> list[Pointstamp]:
        return [(edge.name, t) for edge in self.dataflow.edges for t in self.dataflow.times]
