"""What is kept for each location, and which locations it tells of its changes.

Locations on a common cycle form a component; components are a directed acyclic graph. Between
components a frontier is passed on by its changes, in topological order, and only as far as
frontiers change. Inside of one, where changes could chase each other round the cycle for ever,
paths are not followed step by step: what comes into it anywhere is told directly to the exits, by
the summaries of the paths there, and the frontier of any other member is made when it is asked for.
So no order of times is needed but their own, partial one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cutwater.progress.graph import Graph, Route
from cutwater.progress.minima import Minima
from cutwater.progress.summaries import Summary
from cutwater.times import Antichain, minimal

__all__ = ["Place", "Targets", "places_of"]

Targets = list[tuple["Place", tuple[Summary, ...]]]
"""Other locations, with the minimal summaries of the ways between."""


@dataclass(slots=True, eq=False)
class Place:
    """A location and what could come to it."""

    name: str
    rank: int
    """The place of its component in topological order."""
    depth: int
    """How many loops its times are in."""
    live: dict[Any, int] = field(default_factory=dict)
    """The pointstamps here, with their counts."""
    local: Minima = field(default_factory=Minima)
    """Of the pointstamps here, and of what other components could send here."""
    reached: Minima | None = None
    """At an exit of a cycle: of all that could come here."""
    outside: Targets = field(default_factory=list)
    """The next locations in other components."""
    exits: Targets = field(default_factory=list)
    """On a cycle: the members of the component that have a way out of it."""
    members: Targets = field(default_factory=list)
    """On a cycle: all members of the component, with the ways from there to here."""
    is_queued: bool = False
    frontier: Antichain | None = field(default_factory=Antichain)
    """What could come here; None if it may have changed since it was made."""
    told: Antichain = field(default_factory=Antichain)
    """The frontier when it was last asked what has moved."""

    def current(self) -> Antichain:
        """The frontier, made anew if it may have changed."""
        if self.frontier is None:
            if self.members and self.reached is None:
                times = [
                    summary(time)
                    for member, summaries in self.members
                    for time in member.local.elements
                    for summary in summaries
                ]
            else:
                times = (self.reached or self.local).elements
            self.frontier = Antichain(times)
        return self.frontier


def places_of(
    graph: Graph, routes: Mapping[str, Mapping[str, tuple[Route, ...]]]
) -> dict[str, Place]:
    """A place for each location, wired to those that its changes matter to.

    What can be reached shrinks from component to component, so its size puts them in order.
    """
    component = {x: frozenset(y for y in routes[x] if x in routes[y]) for x in graph.locations}
    order = sorted(set(component.values()), key=lambda c: (-len(routes[min(c)]), min(c)))
    rank = {x: order.index(component[x]) for x in graph.locations}
    places = {x: Place(x, rank[x], graph.depth[x]) for x in graph.locations}
    for x, place in places.items():
        place.outside = [
            (places[y], tuple(minimal(summaries)))
            for y, summaries in graph.arcs[x]
            if y not in component[x]
        ]
    for x in places:
        if len(component[x]) > 1:
            _wire_cycle(places, routes, x, sorted(component[x]))
    return places


def _wire_cycle(
    places: dict[str, Place],
    routes: Mapping[str, Mapping[str, tuple[Route, ...]]],
    x: str,
    component: list[str],
) -> None:
    def ways(start: str, end: str) -> tuple[Summary, ...]:
        return tuple(route.summary for route in routes[start][end])

    places[x].members = [(places[y], ways(y, x)) for y in component]
    places[x].exits = [(places[y], ways(x, y)) for y in component if places[y].outside]
    if places[x].outside:
        places[x].reached = Minima()
