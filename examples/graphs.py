"""Loops over graphs that grow: components, distances and permissions, kept up to date.

Each flow reads edges and shows what changes. What one node tells another goes round the loop, one
round for each step along an edge, until nobody has anything new to tell.

    cutwater run examples/graphs.py:components --source edges=edges --sink components=out \\
        --checkpoint checkpoint

reads lines such as ``{"a": 1, "b": 2}`` from the folder ``edges`` and writes a line for each node
whose component changed: the least node of it. ``distances`` heeds the ``length`` of an edge and
counts from node 0; ``permissions`` writes each pair of its transitive closure once.

An epoch changes little. Then all rounds in one bucket (``plan="epoch"``) are quicker than a round
an epoch in all buckets, which is what Spark does without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import cutwater as cw

START = 0
"""The node from which distances count."""


@dataclass(frozen=True)
class Edge:
    """A line between two nodes; for distances and permissions it leads from `a` to `b`."""

    a: int
    b: int
    length: int = 1


@dataclass(frozen=True)
class Told:
    """What a node is told by another: a component, or a distance."""

    node: int
    value: int


@dataclass(frozen=True)
class Known:
    """What is known of a node now: its component, or its distance."""

    node: int
    value: int


@dataclass(frozen=True)
class Node:
    """What a node keeps: the best value it knows, and its edges with their lengths."""

    best: int | None = None
    edges: tuple[tuple[int, int], ...] = ()


def node_of(event: Edge | Told) -> int:
    """The node that an event is for."""
    return event.a if isinstance(event, Edge) else event.node


def both_ways(edge: Edge) -> list[Edge]:
    """The edge as both of its nodes see it; of no length, since a component is one."""
    return [Edge(edge.a, edge.b, 0), Edge(edge.b, edge.a, 0)]


def told(event: Told | Known) -> list[Told]:
    """What goes round again."""
    return [event] if isinstance(event, Told) else []


def known(event: Told | Known) -> list[Known]:
    """What leaves the loop."""
    return [event] if isinstance(event, Known) else []


def improved(node: int, state: Node, value: int) -> tuple[Node, list[Told | Known]]:
    """A node that knows better, shows it and tells its neighbours."""
    spread = [Told(other, value + length) for other, length in state.edges]
    return Node(value, state.edges), [Known(node, value), *spread]


def learned(state: Node, event: Edge | Told, first: int | None) -> tuple[Node, list[Told | Known]]:
    """What a node makes of an edge, or of what it is told; `first` is what it knows by itself."""
    outputs: list[Told | Known] = []
    if state.best is None and first is not None:
        state, outputs = improved(node_of(event), state, first)
    if isinstance(event, Edge):
        state = Node(state.best, (*state.edges, (event.b, event.length)))
        ahead = [] if state.best is None else [Told(event.b, state.best + event.length)]
        return state, [*outputs, *ahead]
    if state.best is not None and state.best <= event.value:
        return state, outputs
    return improved(event.node, state, event.value)


@cw.task(initial=Node())
def component(state: Node, event: Edge | Told) -> tuple[Node, list[Told | Known]]:
    """The component of a node is the least node that it hears of, itself included."""
    return learned(state, event, node_of(event))


@cw.task(initial=Node())
def distance(state: Node, event: Edge | Told) -> tuple[Node, list[Told | Known]]:
    """The distance of a node is the least that it hears of."""
    return learned(state, event, 0 if node_of(event) == START else None)


def spreading(task: cw.Task, name: str):
    """The body of a loop in which nodes tell one another."""

    def body(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
        changes = stream.key_by(node_of).apply(task, name=name)
        return changes.flat_map(told), changes.flat_map(known)

    return body


components = cw.Flow("components")
edges = components.source("edges", Edge)
found = edges.flat_map(both_ways).iterate(spreading(component, "component"), plan="epoch")
components.sink("components", found)

distances = cw.Flow("distances")
roads = distances.source("edges", Edge)
distances.sink("distances", roads.iterate(spreading(distance, "distance"), plan="epoch"))


@dataclass(frozen=True)
class Pair:
    """`a` may do what `b` may: told to `a`."""

    a: int
    b: int


@dataclass(frozen=True)
class Allowed:
    """A pair that is new."""

    a: int
    b: int


@dataclass(frozen=True)
class Links:
    """Who was granted this one directly, and all that this one may do."""

    granted_to: frozenset[int] = frozenset()
    may: frozenset[int] = frozenset()


def told_to(event: Edge | Pair) -> int:
    """A grant is told to what is granted, a pair to who is allowed."""
    return event.b if isinstance(event, Edge) else event.a


@cw.task(initial=Links())
def linked(links: Links, event: Edge | Pair) -> tuple[Links, list[Pair | Allowed]]:
    """A new grant allows all that is allowed here; what is newly allowed here, all above may."""
    if isinstance(event, Edge):
        if event.a in links.granted_to:
            return links, []
        pairs = [Pair(event.a, event.b), *(Pair(event.a, z) for z in sorted(links.may))]
        return Links(links.granted_to | {event.a}, links.may), pairs
    if event.b in links.may:
        return links, []
    above = [Pair(w, event.b) for w in sorted(links.granted_to)]
    return Links(links.granted_to, links.may | {event.b}), [Allowed(event.a, event.b), *above]


def pairs(event: Pair | Allowed) -> list[Pair]:
    """What goes round again."""
    return [event] if isinstance(event, Pair) else []


def allowed(event: Pair | Allowed) -> list[Allowed]:
    """What leaves the loop, once for each pair."""
    return [event] if isinstance(event, Allowed) else []


def closing(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    """The body of a loop that closes a relation; what is known already goes no further."""
    news = stream.key_by(told_to).apply(linked)
    return news.flat_map(pairs), news.flat_map(allowed)


permissions = cw.Flow("permissions")
permissions.sink("pairs", permissions.source("edges", Edge).iterate(closing, plan="epoch"))

inputs = {
    "edges": [Edge(0, 1, 5), Edge(2, 3, 1), cw.BARRIER, Edge(1, 2, 1), Edge(0, 2, 2)],
}
