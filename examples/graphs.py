"""Loops over graphs that grow: components, distances and permissions, kept up to date.

Each flow reads edges and shows what changes. What one node tells another goes round the loop, one
round for each step along an edge, until nobody has anything new to tell.
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
found = edges.flat_map(both_ways).iterate(spreading(component, "component"))
components.sink("components", found)

distances = cw.Flow("distances")
roads = distances.source("edges", Edge)
distances.sink("distances", roads.iterate(spreading(distance, "distance")))


@dataclass(frozen=True)
class Pair:
    """`a` may do what `b` may; told to one of the two."""

    a: int
    b: int
    to: int


@dataclass(frozen=True)
class Links:
    """Who may do what this one may, and what this one may do."""

    before: frozenset[int] = frozenset()
    behind: frozenset[int] = frozenset()


def pair_of(edge: Edge) -> list[Pair]:
    """A grant, told to both."""
    return [Pair(edge.a, edge.b, edge.a), Pair(edge.a, edge.b, edge.b)]


@cw.task(initial=Links())
def linked(links: Links, pair: Pair) -> tuple[Links, list[Pair]]:
    """A new pair, and those that follow from it and from what is known here."""
    if pair.to == pair.a:
        if pair.b in links.behind:
            return links, []
        more = [p for w in links.before for p in pair_of(Edge(w, pair.b))]
        return Links(links.before, links.behind | {pair.b}), [pair, *more]
    if pair.a in links.before:
        return links, []
    more = [p for z in links.behind for p in pair_of(Edge(pair.a, z))]
    return Links(links.before | {pair.a}, links.behind), [pair, *more]


def is_first_news(pair: Pair) -> bool:
    """Is it the news that leaves, once for each pair?"""
    return pair.to == pair.a


@cw.task(initial=False)
def once(is_known: bool, pair: Pair) -> tuple[bool, list[Pair]]:
    """Each pair the first time."""
    return True, [] if is_known else [pair]


def closing(stream: cw.Stream) -> cw.Stream:
    """The body of a loop that closes a relation; what is known already goes no further."""
    fresh = stream.key_by("a", "b", "to").apply(once)
    return fresh.key_by("to").apply(linked)


permissions = cw.Flow("permissions")
grants = permissions.source("edges", Edge)
closed = grants.flat_map(pair_of).iterate(closing).filter(is_first_news)
permissions.sink("pairs", closed.key_by("a", "b", name="by_pair").apply(once, name="shown"))
