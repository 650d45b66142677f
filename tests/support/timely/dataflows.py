"""Random finite dataflows: processors by tables, that keep to their edges' summaries or not."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from random import Random
from typing import Any, Literal

from hypothesis import strategies as st
from support.progress.graphs import DIAMOND, drawn_graph

from cutwater.progress import Edge
from cutwater.semantics.timely.dataflow import (
    Dataflow,
    Message,
    Processor,
    Received,
    precedes,
    reaction,
)
from cutwater.semantics.timely.relation import CouldResultIn, could_result_in
from cutwater.times import Left, Right, in_rounds, rounds_of

Kind = Literal["acyclic", "cyclic", "intransitive"]
KINDS: tuple[Kind, ...] = ("acyclic", "cyclic", "intransitive")


def table_processor(name: str, table: dict[Any, Any], initial: Iterable[Any]) -> Processor:
    """A processor that looks up what to do; by default nothing."""
    return Processor(
        name, lambda state, event: table.get((state, event)) or reaction(state), tuple(initial)
    )


def times_for(graph: Any, outside: Iterable[Any]) -> tuple[Any, ...]:
    """Times of every depth at which the graph has locations, with rounds 0 and 1."""
    depths = sorted(set(graph.depth.values()))
    every = [[(i >> n) & 1 for n in range(depth)] for depth in depths for i in range(2**depth)]
    return tuple(in_rounds(t, tuple(rounds)) for t in outside for rounds in every)


def conforming(random: Random, graph: Any, outside: Iterable[Any]) -> Dataflow:
    """Processors that send at times at or after a summary of the edge: some of these, at random."""
    times = times_for(graph, outside)
    messages = tuple(map(Message, times))
    bare = Dataflow(
        tuple(Processor(node, lambda state, event: reaction(state)) for node in graph.nodes),
        graph.edges, times, messages,
    )  # fmt: skip

    def allowed(edge: Edge, t: Any) -> list[Any]:
        if len(rounds_of(t)) != graph.depth[edge.source]:
            return []
        return [u for u in times if any(precedes(s(t), u) for s in edge.summaries)]

    processors = []
    for node in graph.nodes:
        table = {}
        for state in (0, 1):
            for event in bare.events(node):
                sent = {
                    edge.name: [Message(u) for u in allowed(edge, event.time)[:2]]
                    for edge in bare.outgoing(node)
                    if random.random() < 0.7
                }
                asked = [u for u in times[:4] if precedes(event.time, u) and random.random() < 0.2]
                table[state, event] = reaction(random.choice([0, 1]), sent, asked)
        processors.append(table_processor(node, table, [(0, frozenset())]))
    return Dataflow(tuple(processors), graph.edges, times, messages)


def is_cyclic(dataflow: Dataflow) -> bool:
    graph = dataflow.graph
    return any(
        x != y and y in graph.routes(x) and x in graph.routes(y)
        for x in graph.nodes
        for y in graph.nodes
    )


def kind_of(dataflow: Dataflow, relation: CouldResultIn) -> Kind:
    if not is_cyclic(dataflow):
        return "acyclic"
    return "cyclic" if relation.intransitive is None else "intransitive"


@cache
def drawn(seed: int, kind: Kind) -> tuple[Dataflow, CouldResultIn]:
    """A dataflow of a kind, with its could-result-in by Definitions 1 and 2."""
    random = Random(seed)
    while True:
        with_amounts = kind == "intransitive" or random.random() < 0.5
        back = 0 if kind == "acyclic" else random.randint(1, 2)
        graph = drawn_graph(random, with_amounts=with_amounts, back=back, most=4)
        outside = range(3) if with_amounts else random.choice([range(3), DIAMOND])
        if len(times_for(graph, outside)) <= 12:
            dataflow = conforming(random, graph, outside)
            relation = could_result_in(dataflow)
            if kind_of(dataflow, relation) == kind:
                return dataflow, relation


def dataflows() -> st.SearchStrategy[tuple[Dataflow, CouldResultIn]]:
    """Each kind in a third of the cases."""
    return st.builds(drawn, st.integers(0, 20), st.sampled_from(KINDS))


def arbitrary(random: Random) -> Dataflow:
    """Processors that send anything at any time of several domains, whatever the summaries say."""
    outside = random.choice([range(3), DIAMOND, [Left(0), Left(1), Right(0), Right(1)]])
    times = tuple(outside)
    nodes = [f"n{i}" for i in range(random.randint(1, 4))]
    pairs = [(a, b) for a in nodes for b in nodes if a != b]
    chosen = random.sample(pairs, min(len(pairs), random.randint(1, 5)))
    edges = [Edge(f"e{i}", a, b) for i, (a, b) in enumerate(chosen)]
    edges += [Edge("in", None, nodes[0]), Edge("out", nodes[-1], None)]
    messages = tuple(map(Message, times))
    processors = []
    for node in nodes:
        table = {}
        for t in times:
            sent = {
                edge.name: [Message(u) for u in times if random.random() < 0.25]
                for edge in edges
                if edge.source == node
            }
            for edge in edges:
                if edge.target == node:
                    table[None, Received(edge.name, Message(t))] = reaction(None, sent)
        processors.append(table_processor(node, table, [(None, frozenset())]))
    return Dataflow(tuple(processors), tuple(edges), times, messages)


def arbitrary_dataflows() -> st.SearchStrategy[Dataflow]:
    return st.builds(lambda seed: arbitrary(Random(seed)), st.integers(0, 2**32))
