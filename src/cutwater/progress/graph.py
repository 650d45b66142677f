"""The locations of a dataflow, and what the paths between them do to times.

A location is a node or an edge; P3's pointstamps are pairs of a location and a time. A message on
an edge reaches its target at its own time; a node sends along an edge at the edge's summaries of
the times it received. Summaries belong to a node and an outgoing edge, never to a pair of an
incoming and an outgoing one: P3's Definition 1 ignores where an event came from, since a node may
keep it in its state and send later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cutwater.errors import FlowError, InputError, Problem, many
from cutwater.progress.summaries import IDENTITY, Summary
from cutwater.times import minimal

__all__ = ["Edge", "Graph", "Route", "positive_cycles", "simple_routes", "unknown_location"]


@dataclass(frozen=True, slots=True)
class Edge:
    """A channel from one node to another."""

    name: str
    source: str | None
    """The node that writes it; None for an input of the graph."""
    target: str | None
    """The node that reads it; None for an output of the graph."""
    summaries: tuple[Summary, ...] = (IDENTITY,)
    """The least times at which its source sends: one of them applies to each message. Empty: the
    source sends nothing."""


@dataclass(frozen=True, slots=True)
class Route:
    """A path between two locations and its summary."""

    path: tuple[str, ...]
    """Alternating nodes and edges, including the first and the last location."""
    summary: Summary
    """A lower bound on what it does to a time."""

    def __le__(self, other: Route) -> bool:
        return self.summary <= other.summary


class Graph:
    """Locations and the steps between them.

    Raises `FlowError` if a name is used twice, if an edge has the same node at both ends (P3
    requires distinct ones) or none at all, or if two paths put a location in different numbers of
    loops.

    Examples
    --------
    >>> from cutwater.progress.summaries import EGRESS, FEEDBACK, INGRESS
    >>> loop = Graph([
    ...     Edge("numbers", None, "enter"),
    ...     Edge("first", "enter", "halve", (INGRESS,)),
    ...     Edge("again", "halve", "feedback"),
    ...     Edge("next", "feedback", "halve", (FEEDBACK,)),
    ...     Edge("done", "halve", "leave"),
    ...     Edge("results", "leave", None, (EGRESS,)),
    ... ])
    >>> loop.depth["halve"], loop.depth["results"]
    (1, 0)
    >>> from cutwater.times import Product
    >>> loop.could_result_in("numbers", 3, "next", Product(3, (1,)))
    True
    >>> loop.could_result_in("numbers", 3, "next", Product(3, (0,)))
    False
    """

    def __init__(self, edges: Iterable[Edge], *, nodes: Iterable[str] = ()) -> None:
        self.edges = tuple(edges)
        """In the order given."""
        ends = [end for edge in self.edges for end in (edge.source, edge.target)]
        self.nodes: tuple[str, ...] = tuple(
            dict.fromkeys([*nodes, *(end for end in ends if end is not None)])
        )
        """The given nodes, and the ends of edges."""
        self.locations: tuple[str, ...] = (*self.nodes, *(edge.name for edge in self.edges))
        """Nodes, then edges."""
        if problems := list(self._problems()):
            raise FlowError(problems)
        self.depth: dict[str, int] = _depths(self.locations, self.arcs)
        """How many loops each location is in."""

    def _problems(self) -> Iterator[Problem]:
        for name in dict.fromkeys(n for n in self.locations if self.locations.count(n) > 1):
            yield Problem(
                "duplicate-location",
                f"{name!r} names two locations; nodes and edges are found by their names",
                "rename one of them",
            )
        for edge in self.edges:
            if edge.source is None and edge.target is None:
                yield Problem(
                    "loose-edge", f"edge {edge.name!r} has no end", "name its source or its target"
                )
            elif edge.source == edge.target:
                yield Problem(
                    "self-loop",
                    f"edge {edge.name!r} leads from {edge.source!r} to itself; "
                    "the ends of an edge are distinct",
                    "put a node for the feedback between them",
                )

    @cached_property
    def arcs(self) -> dict[str, tuple[tuple[str, tuple[Summary, ...]], ...]]:
        """For each location, its successors with the summaries of the step."""
        found: dict[str, list[tuple[str, tuple[Summary, ...]]]] = {x: [] for x in self.locations}
        for edge in self.edges:
            if edge.source is not None and edge.summaries:
                found[edge.source].append((edge.name, edge.summaries))
            if edge.target is not None:
                found[edge.name].append((edge.target, (IDENTITY,)))
        return {x: tuple(steps) for x, steps in found.items()}

    def could_result_in(self, x: str, t: Any, y: str, u: Any) -> bool:
        """May a message or notification at ``(x, t)`` lead to one at ``(y, u)``?

        P3's relation, conservatively: Definition 2 with summaries in place of what nodes do. It
        follows simple paths only, so it is transitive only where every cycle is positive.
        """
        return any(route.summary(t) <= u for route in self.routes(x).get(y, ()))

    def routes(self, start: str) -> Mapping[str, tuple[Route, ...]]:
        """For each reachable location, the simple paths to it with minimal summaries.

        Raises `InputError` if there is no location `start`.
        """
        if start not in self.depth:
            raise unknown_location(start, self)
        if start not in self._routes:
            self._routes[start] = simple_routes(self, start)
        return self._routes[start]

    @cached_property
    def _routes(self) -> dict[str, Mapping[str, tuple[Route, ...]]]:
        return {}


def unknown_location(name: str, graph: Graph) -> InputError:
    """The error for a location that does not exist."""
    listed = ", ".join(graph.locations)
    return InputError(
        Problem("unknown-location", f"there is no location {name!r}", f"there are: {listed}")
    )


def simple_routes(graph: Graph, start: str) -> Mapping[str, tuple[Route, ...]]:
    """Minimal routes from a location, found by walking every simple path."""
    found: dict[str, list[Route]] = {}
    todo = deque([Route((start,), IDENTITY)])
    while todo:
        route = todo.popleft()
        found.setdefault(route.path[-1], []).append(route)
        for location, summaries in graph.arcs[route.path[-1]]:
            if location not in route.path:
                todo.extend(_extended(route, location, summary) for summary in summaries)
    return {location: tuple(minimal(routes)) for location, routes in found.items()}


def positive_cycles(graph: Graph) -> dict[str, Mapping[str, tuple[Route, ...]]]:
    """Minimal routes from every location, in a graph whose cycles are all strictly positive.

    Raises `FlowError` with the path of a cycle that is not. Until one is found, a longer path to a
    location already reached by an equal or smaller summary adds nothing: continuing from it only
    reaches later times. So this does not walk all simple paths.
    """
    return {start: _pruned_routes(graph, start) for start in graph.locations}


def _pruned_routes(graph: Graph, start: str) -> Mapping[str, tuple[Route, ...]]:
    found: dict[str, list[Route]] = {}
    todo = deque([Route((start,), IDENTITY)])
    while todo:
        route = todo.popleft()
        known = found.setdefault(route.path[-1], [])
        if any(other <= route for other in known):
            continue
        found[route.path[-1]] = [other for other in known if not route <= other] + [route]
        for location, summaries in graph.arcs[route.path[-1]]:
            for further in (_extended(route, location, summary) for summary in summaries):
                if location == start:
                    _check_positive(further)
                elif location not in route.path:
                    todo.append(further)
    return {location: tuple(routes) for location, routes in found.items()}


def _extended(route: Route, location: str, summary: Summary) -> Route:
    return Route((*route.path, location), route.summary.then(summary))


def _check_positive(cycle: Route) -> None:
    if cycle.summary.is_strictly_positive:
        return
    raise FlowError(
        Problem(
            "cycle-without-progress",
            f"a message may go round {' → '.join(cycle.path)} and come back no later than it left; "
            "every cycle must lead to a later time, or no time in it is ever complete",
            "let one edge of the cycle add to the time: a feedback adds a round to its loop",
        )
    )


def _depths(
    locations: Iterable[str],
    arcs: Mapping[str, tuple[tuple[str, tuple[Summary, ...]], ...]],
) -> dict[str, int]:
    """How many loops each location is in: the least numbers consistent with all steps."""
    around: dict[str, list[tuple[str, int]]] = {x: [] for x in locations}
    for x, steps in arcs.items():
        for y, summaries in steps:
            for summary in summaries:
                around[x].append((y, summary.deepening))
                around[y].append((x, -summary.deepening))
    depths: dict[str, int] = {}
    for start in around:
        if start not in depths:
            part = _relative_depths(start, around)
            needed = [
                summary.depth_needed - part[x]
                for x in part
                for _, summaries in arcs[x]
                for summary in summaries
            ]
            base = max([*needed, -min(part.values())])
            depths |= {x: relative + base for x, relative in part.items()}
    return depths


def _relative_depths(start: str, around: Mapping[str, list[tuple[str, int]]]) -> dict[str, int]:
    depths = {start: 0}
    todo = [start]
    while todo:
        x = todo.pop()
        for y, deepening in around[x]:
            if y not in depths:
                depths[y] = depths[x] + deepening
                todo.append(y)
            elif depths[y] != depths[x] + deepening:
                raise _uneven(start, y, depths[y], depths[x] + deepening)
    return depths


def _uneven(start: str, location: str, one: int, other: int) -> FlowError:
    return FlowError(
        Problem(
            "uneven-loops",
            f"by one path {location!r} is {many(one, 'loop')} deeper than {start!r}, by another "
            f"{many(other, 'loop')}; a location is always in the same loops",
            "let every way into a loop be an ingress, and every way out an egress",
        )
    )
