"""Two graphs that share edges, and their composite (P3, section 4.3).

The paper leaves open how the composite Spec₁₂ relates to the specification of the whole graph. Here
both are models, with Clock as a parameter, so that their externally visible behaviours can be
compared:

- Behaviours of the whole are behaviours of the composite if no node both reads and writes edges
  that connect the graphs (`crossing`). Where one does, its step is an Inp and an Outp of the other
  graph at once, and no graph has such a step. Buffer nodes on the connecting edges help.
- The converse does not hold. Acts says nothing of Inp and Outp, so in the composite the outside may
  add to one graph's inputs, or take from its outputs, just when a node of the other reads an input
  or writes an output; the whole shows that as two steps. Only where such a node also reads a
  connecting edge (for inputs), or touches one (for outputs), does the first graph already take
  part in its step. Where nothing changes from outside, the converse holds on all that was explored.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import msgspec

from cutwater.semantics.timely.actions import (
    ClockOf,
    Configuration,
    change_inputs,
    change_outputs,
    initial_configurations,
    is_subsequence,
    notify,
    receive,
)
from cutwater.semantics.timely.clock import Clock
from cutwater.semantics.timely.dataflow import Dataflow, Message
from cutwater.semantics.timely.relation import could_result_in

__all__ = ["Composite", "acts", "crossing", "is_step", "joined_dataflows"]


def joined_dataflows(first: Dataflow, second: Dataflow) -> Dataflow:
    """The whole graph: an output of one with the name of an input of the other connects them."""
    others = {edge.name: edge for edge in second.edges}
    edges = []
    for edge in first.edges:
        other = others.pop(edge.name, None)
        if other is None:
            edges.append(edge)
        elif edge.target is None:
            edges.append(replace(edge, target=other.target))
        else:
            edges.append(replace(other, target=edge.target))
    return Dataflow(
        first.processors + second.processors,
        (*edges, *others.values()),
        tuple(dict.fromkeys(first.times + second.times)),
        tuple(dict.fromkeys(first.messages + second.messages)),
    )


def crossing(first: Dataflow, second: Dataflow) -> list[str]:
    """The nodes that both read and write connecting edges: what the composite cannot follow."""
    shared = {edge.name for edge in first.edges} & {edge.name for edge in second.edges}
    return [
        processor.name
        for graph in (first, second)
        for processor in graph.processors
        if shared & {edge.name for edge in graph.incoming(processor.name)}
        and shared & {edge.name for edge in graph.outgoing(processor.name)}
    ]


def is_step(dataflow: Dataflow, c: Configuration, there: Configuration, clock: ClockOf) -> bool:
    """[Mess ∨ Not ∨ Inp ∨ Outp], or nothing at all; `clock` is of the configuration before."""
    return (
        c == there
        or there in _own_steps(dataflow, c, clock)
        or there == change_inputs(dataflow, c, _queues(dataflow, there, dataflow.inputs))
        or there == change_outputs(dataflow, c, _queues(dataflow, there, dataflow.outputs))
    )


def acts(dataflow: Dataflow, c: Configuration, there: Configuration) -> bool:
    """Acts_j: an input has been read, or an output written."""

    def is_shorter(short: tuple[Message, ...], long: tuple[Message, ...]) -> bool:
        return short != long and is_subsequence(short, long)

    at = dataflow.edge_number
    return any(
        is_shorter(there.queues[at[e.name]], c.queues[at[e.name]]) for e in dataflow.inputs
    ) or any(is_shorter(c.queues[at[e.name]], there.queues[at[e.name]]) for e in dataflow.outputs)


def _own_steps(dataflow: Dataflow, c: Configuration, clock: ClockOf) -> Iterator[Configuration]:
    """Mess and Not."""
    for edge in dataflow.edges:
        if (there := receive(dataflow, c, edge.name)) is not None:
            yield there
    for processor, times in zip(dataflow.processors, c.requests, strict=True):
        for t in times:
            if (there := notify(dataflow, c, processor.name, t, clock(c))) is not None:
                yield there


def _queues(
    dataflow: Dataflow, c: Configuration, edges: Iterable[object]
) -> dict[str, tuple[Message, ...]]:
    return {
        edge.name: queue
        for edge, queue in zip(dataflow.edges, c.queues, strict=True)
        if edge in edges
    }


_Arrival = tuple[str, Message]
"""A message that Inp may add to an edge."""
_Candidate = tuple[Configuration, tuple[_Arrival, ...]]
"""What a graph may turn into, and what was added to its inputs from outside."""


class _Joint(msgspec.Struct, frozen=True, cache_hash=True):
    """A state of the composite; as a step, where it leads."""

    configuration: Configuration
    arriving: tuple[_Arrival, ...] = ()
    """What may still be added to input edges of the whole."""


def _arrivals(
    dataflow: Dataflow, c: Configuration, arriving: Iterable[_Arrival]
) -> Iterator[_Candidate]:
    """Inp, from outside."""
    for name, message in dict.fromkeys(arriving):
        if name in dataflow.edge_number:
            queue = (*c.queues[dataflow.edge_number[name]], message)
            there = change_inputs(dataflow, c, {name: queue})
            assert there is not None
            yield there, ((name, message),)


def _without(arriving: tuple[_Arrival, ...], added: Iterable[_Arrival]) -> tuple[_Arrival, ...]:
    rest = list(arriving)
    for each in added:
        rest.remove(each)
    return tuple(rest)


class Composite:
    """The composite of two graphs as a model (P3: Spec₁₂).

    A state is a configuration of the whole graph; the queues of connecting edges are shared. A step
    is at once a step of each graph, or a stutter, and not both act. What is observed is what is
    observed of the whole: its input and output edges.

    `arriving` are messages that Inp may add, each once, at any moment: at the end of its edge.
    """

    def __init__(
        self,
        first: Dataflow,
        second: Dataflow,
        inputs: Mapping[str, Sequence[Message]],
        *,
        clock: ClockOf | None = None,
        arriving: Sequence[_Arrival] = (),
        has_outputs: bool = False,
    ) -> None:
        self.whole = joined_dataflows(first, second)
        self.parts = (first, second)
        self.inputs, self.has_outputs = inputs, has_outputs
        self.arriving = tuple(arriving)
        self.clock = clock or Clock(self.whole, could_result_in(self.whole))

    def initial_states(self) -> Iterable[_Joint]:
        """Every choice of initial states."""
        return [_Joint(c, self.arriving) for c in initial_configurations(self.whole, self.inputs)]

    def actions(self, state: _Joint) -> list[_Joint]:
        """The steps that both graphs allow."""
        found: dict[_Joint, None] = {}
        c = state.configuration
        for one, other in product(*(self._candidates(part, state) for part in self.parts)):
            there = self._merged(c, (one[0], other[0]))
            if there is not None and there != c and self._is_allowed(c, there):
                found[_Joint(there, _without(state.arriving, one[1] + other[1]))] = None
        return list(found)

    def step(self, state: _Joint, action: _Joint) -> _Joint:
        """The state after a step."""
        return action

    def observation(self, state: _Joint) -> Hashable:
        """The queues of the input and output edges of the whole."""
        at = self.whole.edge_number
        return tuple(
            (edge.name, state.configuration.queues[at[edge.name]])
            for edge in (*self.whole.inputs, *self.whole.outputs)
        )

    def _candidates(self, part: Dataflow, state: _Joint) -> list[_Candidate]:
        """The steps a graph may take by itself, and none; the other graph has to allow them."""
        c = state.configuration
        view = self._view(part, c)
        own = [view, *_own_steps(part, view, lambda _: self.clock(c)), *self._removals(part, view)]
        return [(there, ()) for there in own] + list(_arrivals(part, view, state.arriving))

    def _removals(self, part: Dataflow, view: Configuration) -> Iterator[Configuration]:
        """Outp, on outputs of the whole."""
        ends = {edge.name for edge in self.whole.outputs} if self.has_outputs else set()
        for name, queue in _queues(part, view, part.outputs).items():
            for i in range(len(queue) if name in ends else 0):
                there = change_outputs(part, view, {name: (*queue[:i], *queue[i + 1 :])})
                assert there is not None
                yield there

    def _is_allowed(self, state: Configuration, there: Configuration) -> bool:
        views = [(part, self._view(part, state), self._view(part, there)) for part in self.parts]
        clock = self.clock(state)
        return all(is_step(*view, lambda _: clock) for view in views) and not all(
            acts(*view) for view in views
        )

    def _view(self, part: Dataflow, c: Configuration) -> Configuration:
        """The part of a configuration that belongs to a graph."""
        nodes = [self.whole.number[processor.name] for processor in part.processors]
        edges = [self.whole.edge_number[edge.name] for edge in part.edges]
        return Configuration(
            tuple(c.states[i] for i in nodes),
            tuple(c.requests[i] for i in nodes),
            tuple(c.queues[i] for i in edges),
        )

    def _merged(
        self, state: Configuration, views: tuple[Configuration, ...]
    ) -> Configuration | None:
        """The configuration after both changes; None if they contradict each other."""
        changed: dict[str, tuple[Message, ...]] = {}
        for part, view in zip(self.parts, views, strict=True):
            for edge, queue in zip(part.edges, view.queues, strict=True):
                if queue != state.queues[self.whole.edge_number[edge.name]]:
                    if edge.name in changed:
                        return None
                    changed[edge.name] = queue
        queues = zip(self.whole.edges, state.queues, strict=True)
        return Configuration(
            tuple(s for view in views for s in view.states),
            tuple(n for view in views for n in view.requests),
            tuple(changed.get(edge.name, queue) for edge, queue in queues),
        )
