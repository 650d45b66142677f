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
from cutwater.progress.summaries import IDENTITY, Summary
from cutwater.times import Antichain, minimal

__all__ = ["Cycle", "Place", "Targets", "places_of"]

Targets = list[tuple["Place", tuple[Summary, ...]]]
"""Other locations, with the minimal summaries of the ways between."""


@dataclass(slots=True)
class Cycle:
    """Locations each of which can be reached from each other."""

    exits: list[Place] = field(default_factory=list)
    """Those with a way out."""
    inner: list[Place] = field(default_factory=list)
    """The others."""
    is_read: bool = True
    """Was the frontier of an inner one made since the last change? Mostly nobody asks for it, and
    then a change need not visit them all."""


@dataclass(slots=True, eq=False)
class Place:
    """A location and what could come to it."""

    name: str
    rank: int
    """The place of its component in topological order."""
    number: int
    """Its own place among all, in the order of ranks."""
    depth: int
    """How many loops its times are in."""
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
    relays: Place | None = None
    """The only place before it, if it has had no pointstamps and sends on what that sends: then its
    frontier is the same, and nothing of its own need be kept. So it is with most nodes."""
    cycle: Cycle | None = None
    """The cycle that it is on."""
    is_queued: bool = False
    frontier: Antichain | None = field(default_factory=Antichain)
    """What could come here; None if it may have changed since it was made."""
    told: Antichain = field(default_factory=Antichain)
    """The frontier when it was last asked what has moved."""

    def current(self) -> Antichain:
        """The frontier, made anew if it may have changed."""
        if self.frontier is None:
            if self.cycle is not None and self.reached is None:
                self.cycle.is_read = True
                times = [
                    summary(time)
                    for member, summaries in self.members
                    for time in member.local.entries
                    for summary in summaries
                ]
            else:
                times = self.elements
            self.frontier = Antichain(times)
        return self.frontier

    @property
    def elements(self) -> list[Any]:
        """Not inside a cycle: the least times that could come here, as told to those behind it."""
        place = self
        while place.relays is not None:
            place = place.relays
        return (place.reached or place.local).elements

    def stop_relaying(self) -> None:
        """Keep from now on what the place before it has told."""
        told, self.relays = self.elements, None
        for time in told:
            self.local.add(time, 1)
        self.local.settle()


def places_of(
    graph: Graph, routes: Mapping[str, Mapping[str, tuple[Route, ...]]]
) -> dict[str, Place]:
    """A place for each location, in the order of ranks, wired to those that its changes matter to.

    What can be reached shrinks from component to component, so its size puts them in order.
    """
    component = {x: frozenset(y for y in routes[x] if x in routes[y]) for x in graph.locations}
    order = sorted(set(component.values()), key=lambda c: (-len(routes[min(c)]), min(c)))
    rank = {x: order.index(component[x]) for x in graph.locations}
    by_rank = sorted(graph.locations, key=lambda x: (rank[x], x))
    places = {x: Place(x, rank[x], number, graph.depth[x]) for number, x in enumerate(by_rank)}
    for x, place in places.items():
        place.outside = [
            (places[y], tuple(minimal(summaries)))
            for y, summaries in graph.arcs[x]
            if y not in component[x]
        ]
    for x in places:
        if len(component[x]) == 1:
            _wire_relay(graph, places, x)
    cycles = {members: Cycle() for members in order if len(members) > 1}
    for x, place in places.items():
        if component[x] in cycles:
            place.cycle = cycles[component[x]]
            _wire_cycle(places, routes, x, sorted(component[x]))
    return places


def _wire_relay(graph: Graph, places: dict[str, Place], x: str) -> None:
    arcs = [(y, summaries) for y in places for z, summaries in graph.arcs[y] if z == x]
    if [summaries for _, summaries in arcs] == [(IDENTITY,)]:
        places[x].relays = places[arcs[0][0]]


def _wire_cycle(
    places: dict[str, Place],
    routes: Mapping[str, Mapping[str, tuple[Route, ...]]],
    x: str,
    component: list[str],
) -> None:
    def ways(start: str, end: str) -> tuple[Summary, ...]:
        return tuple(route.summary for route in routes[start][end])

    place = places[x]
    assert place.cycle is not None
    place.members = [(places[y], ways(y, x)) for y in component]
    place.exits = [(places[y], ways(x, y)) for y in component if places[y].outside]
    if place.outside:
        place.reached = Minima()
        place.cycle.exits.append(place)
    else:
        place.cycle.inner.append(place)
