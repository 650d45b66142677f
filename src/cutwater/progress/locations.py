"""The state kept for each location, and the locations that its changes propagate to.

Locations on a common cycle form a component; components form a directed acyclic graph. Between
components, changes of a frontier propagate in topological order, and only as far as frontiers
change. Inside a component, where changes could chase each other round the cycle for ever, paths
are not followed step by step: whatever enters it anywhere is reported directly to the exits, by
the summaries of the paths there, and the frontier of any other member is computed on demand. So no
order of times is needed but their own, partial one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cutwater.progress.graph import Graph, Route
from cutwater.progress.minima import Minima
from cutwater.progress.summaries import IDENTITY, Summary
from cutwater.times import Antichain, minimal

__all__ = ["Cycle", "LocationState", "Targets", "location_states"]

Targets = list[tuple["LocationState", tuple[Summary, ...]]]
"""Other locations, with the minimal summaries of the paths between."""


@dataclass(slots=True)
class Cycle:
    """Locations that are all reachable from one another."""

    exits: list[LocationState] = field(default_factory=list)
    """The members with an edge out of the cycle."""
    inner: list[LocationState] = field(default_factory=list)
    """The other members."""
    is_read: bool = True
    """Was the frontier of an inner member computed since the last change? It is rarely requested,
    and if it was not, a change need not visit them all."""


@dataclass(slots=True, eq=False)
class LocationState:
    """A location and what could arrive at it."""

    name: str
    rank: int
    """The position of its component in topological order."""
    number: int
    """Its position among all locations, in the order of ranks."""
    depth: int
    """How many loops its times are in."""
    local: Minima = field(default_factory=Minima)
    """The pointstamps here, and what other components could send here."""
    reached: Minima | None = None
    """At an exit of a cycle: everything that could arrive here."""
    outside: Targets = field(default_factory=list)
    """The successors in other components."""
    exits: Targets = field(default_factory=list)
    """On a cycle: the exits of the component."""
    members: Targets = field(default_factory=list)
    """On a cycle: all members of the component, with the paths from there to here."""
    relays: LocationState | None = None
    """Its only predecessor, if this location has had no pointstamps and the step is the identity:
    the frontiers are then equal, and nothing is kept here. This is so for most nodes."""
    cycle: Cycle | None = None
    """The cycle that it is on; None: not on a cycle."""
    is_queued: bool = False
    frontier: Antichain | None = field(default_factory=Antichain)
    """What could arrive here; None if it may have changed since it was computed."""
    reported: Antichain = field(default_factory=Antichain)
    """The frontier at the last call of `Progress.moved`."""

    def current(self) -> Antichain:
        """The frontier, recomputed if it may have changed."""
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
        """The least times that could arrive here, as propagated onwards; not inside a cycle."""
        state = self
        while state.relays is not None:
            state = state.relays
        return (state.reached or state.local).elements

    def stop_relaying(self) -> None:
        """Start keeping its own state, initialised with what its predecessor propagated."""
        inherited, self.relays = self.elements, None
        for time in inherited:
            self.local.add(time, 1)
        self.local.settle()


def location_states(
    graph: Graph, routes: Mapping[str, Mapping[str, tuple[Route, ...]]]
) -> dict[str, LocationState]:
    """A state for each location, in the order of ranks, wired to those that its changes affect.

    The reachable set shrinks from component to component, so its size orders them topologically.
    """
    component = {x: frozenset(y for y in routes[x] if x in routes[y]) for x in graph.locations}
    order = sorted(set(component.values()), key=lambda c: (-len(routes[min(c)]), min(c)))
    rank = {x: order.index(component[x]) for x in graph.locations}
    by_rank = sorted(graph.locations, key=lambda x: (rank[x], x))
    states = {
        x: LocationState(x, rank[x], number, graph.depth[x]) for number, x in enumerate(by_rank)
    }
    for x, state in states.items():
        state.outside = [
            (states[y], tuple(minimal(summaries)))
            for y, summaries in graph.arcs[x]
            if y not in component[x]
        ]
    for x in states:
        if len(component[x]) == 1:
            _wire_relay(graph, states, x)
    cycles = {members: Cycle() for members in order if len(members) > 1}
    for x, state in states.items():
        if component[x] in cycles:
            state.cycle = cycles[component[x]]
            _wire_cycle(states, routes, x, sorted(component[x]))
    return states


def _wire_relay(graph: Graph, states: dict[str, LocationState], x: str) -> None:
    arcs = [(y, summaries) for y in states for z, summaries in graph.arcs[y] if z == x]
    if [summaries for _, summaries in arcs] == [(IDENTITY,)]:
        states[x].relays = states[arcs[0][0]]


def _wire_cycle(
    states: dict[str, LocationState],
    routes: Mapping[str, Mapping[str, tuple[Route, ...]]],
    x: str,
    component: list[str],
) -> None:
    def ways(start: str, end: str) -> tuple[Summary, ...]:
        return tuple(route.summary for route in routes[start][end])

    state = states[x]
    assert state.cycle is not None
    state.members = [(states[y], ways(y, x)) for y in component]
    state.exits = [(states[y], ways(x, y)) for y in component if states[y].outside]
    if state.outside:
        state.reached = Minima()
        state.cycle.exits.append(state)
    else:
        state.cycle.inner.append(state)
