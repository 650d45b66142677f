"""Frontiers of all locations, kept up to date while pointstamps come and go.

P3's Clock is the set of pointstamps that live ones could result in. Its part at a location is
upward closed, so its minimal times stand for it: the frontier. `Progress` keeps these and changes
them by what changed.

Locations on a common cycle form a component; components are a directed acyclic graph. Between
components a frontier is passed on by its changes, in topological order, and only as far as
frontiers change. Inside of one, where changes could chase each other round the cycle for ever, each
location is told directly, by the summaries of paths inside. So no order of times is needed but
their own, partial one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cutwater.errors import InputError, Problem, many
from cutwater.progress.graph import Graph, positive_cycles, unknown_location
from cutwater.progress.summaries import IDENTITY, Summary
from cutwater.times import Antichain, minimal, rounds_of

__all__ = ["Holder", "Progress"]


@dataclass(frozen=True, slots=True)
class Holder:
    """A live pointstamp that holds a time at another location."""

    location: str
    time: Any
    count: int
    """How many messages or requests there are at this time."""
    path: tuple[str, ...]
    """A shortest way by which it could result in what it holds."""
    arrival: Any
    """The least time at which it could arrive on this way."""


class _Minima:
    """The minimal times of a multiset, and how they change."""

    __slots__ = ("counts", "elements", "pending")

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}
        """Positive; of all times, not only the minimal ones."""
        self.elements: list[Any] = []
        """The minimal times."""
        self.pending: dict[Any, int] = {}
        """Changes that are not in the counts yet."""

    def add(self, time: Any, change: int) -> None:
        self.pending[time] = self.pending.get(time, 0) + change

    def add_along(self, summaries: tuple[Summary, ...], changes: list[tuple[Any, int]]) -> None:
        """Add what changes elsewhere mean here."""
        pending = self.pending
        for summary in summaries:
            for time, change in changes:
                there = time if summary is IDENTITY else summary(time)
                pending[there] = pending.get(there, 0) + change

    def settle(self) -> list[tuple[Any, int]]:
        """Apply what is pending; the minimal times that came (1) and went (-1)."""
        if not self.pending:
            return []
        came, is_lost = self._count()
        if not (came or is_lost):
            return []
        before = self.elements
        # What a lost minimum covered is any of the times; what came can only displace.
        candidates = self.counts if is_lost else (*before, *came)
        self.elements = _minimal_of(candidates)
        gone = [(time, -1) for time in before if time not in self.elements]
        return gone + [(time, 1) for time in self.elements if time not in before]

    def _count(self) -> tuple[list[Any], bool]:
        came: list[Any] = []
        is_lost = False
        for time, change in self.pending.items():
            if not change:
                continue
            count = self.counts.get(time, 0) + change
            if count:
                if count == change:
                    came.append(time)
                self.counts[time] = count
            else:
                del self.counts[time]
                is_lost = is_lost or time in self.elements
        self.pending = {}
        return came, is_lost


def _minimal_of(times: Mapping[Any, int] | tuple[Any, ...]) -> list[Any]:
    """The minimal ones of distinct times."""
    found: list[Any] = []
    for time in times:
        for other in found:
            if other <= time:
                break
        else:
            if found:
                found = [other for other in found if not time <= other]
            found.append(time)
    return found


@dataclass(slots=True)
class _Place:
    """What is kept for a location."""

    name: str
    rank: int
    """Its component comes before those of a greater rank."""
    depth: int
    """How many loops its times are in."""
    live: dict[Any, int] = field(default_factory=dict)
    """The pointstamps here, with their counts."""
    local: _Minima = field(default_factory=_Minima)
    """Of the pointstamps here, and of what other components could send here."""
    reached: _Minima | None = None
    """Of what could come here from anywhere; None if that is `local`, with no cycle around."""
    inside: list[tuple[_Place, tuple[Summary, ...]]] = field(default_factory=list)
    """The locations of a cyclic component, with the paths there."""
    outside: list[tuple[_Place, tuple[Summary, ...]]] = field(default_factory=list)
    """The next locations in other components."""
    is_queued: bool = False
    frontier: Antichain | None = None
    """As asked for last; None if it has changed since."""

    @property
    def minima(self) -> list[Any]:
        return (self.reached or self.local).elements


class Progress:
    """Which times may still come at each location of a graph.

    Raises `FlowError` with the path of a cycle that does not lead to a later time.

    Examples
    --------
    >>> from cutwater.progress import Edge, Graph, add
    >>> graph = Graph([Edge("in", None, "delay"), Edge("out", "delay", None, (add(10),))])
    >>> progress = Progress(graph)
    >>> progress.update("in", 3, +1)
    >>> progress.update("in", 5, +2)
    >>> progress.frontier("out")
    Antichain([13])
    >>> progress.update("in", 3, -1)
    >>> progress.frontier("out")
    Antichain([15])
    >>> [(holder.location, holder.time, holder.path) for holder in progress.holders("out", 20)]
    [('in', 5, ('in', 'delay', 'out'))]
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._routes = positive_cycles(graph)
        self._places = _places(graph, self._routes)
        self._queue: list[tuple[int, str]] = []
        self._moved: dict[str, None] = {}

    def update(self, location: str, time: Any, change: int) -> None:
        """Count so many more (or fewer) messages or requests at a location and time.

        Raises `InputError` if there would be fewer than none, or if the time is not in as many
        loops as the location.
        """
        place = self._place_of(location, time)
        count = place.live.get(time, 0) + change
        if count > 0:
            place.live[time] = count
        elif count == 0:
            place.live.pop(time, None)
        else:
            raise InputError(
                Problem(
                    "fewer-than-none",
                    f"{location!r} has {count - change} at {time!r}, and {-change} were to go",
                    "count what is sent before it is received",
                )
            )
        place.local.add(time, change)
        if not place.is_queued:
            place.is_queued = True
            heapq.heappush(self._queue, (place.rank, location))

    def _place_of(self, location: str, time: Any) -> _Place:
        place = self._place(location)
        if len(rounds_of(time)) != place.depth:
            raise _at_wrong_depth(place, time)
        return place

    def _place(self, location: str) -> _Place:
        try:
            return self._places[location]
        except KeyError:
            raise unknown_location(location, self.graph) from None

    def frontier(self, location: str) -> Antichain:
        """The least times at which something may still come to a location, or is there."""
        place = self._place(location)
        self._settle()
        if place.frontier is None:
            place.frontier = Antichain(place.minima)
        return place.frontier

    def is_complete(self, location: str, time: Any) -> bool:
        """Can nothing come to the location any more at this time or before it?"""
        place = self._place_of(location, time)
        self._settle()
        return not any(element <= time for element in place.minima)

    def moved(self) -> dict[str, Antichain]:
        """The frontiers that have changed since this was asked last."""
        self._settle()
        found = {location: self.frontier(location) for location in self._moved}
        self._moved.clear()
        return found

    def live(self) -> Iterator[tuple[str, Any, int]]:
        """Every pointstamp with its count."""
        for place in self._places.values():
            for time, count in place.live.items():
                yield place.name, time, count

    def holders(self, location: str, time: Any) -> list[Holder]:
        """The pointstamps that could result in ``(location, time)``, nearest first.

        Each with a shortest path by which it could; empty if the time is complete.
        """
        self._place_of(location, time)
        found = []
        for x, t, count in self.live():
            routes = [
                route for route in self._routes[x].get(location, ()) if route.summary(t) <= time
            ]
            if routes:
                route = min(routes, key=lambda route: len(route.path))
                found.append(Holder(x, t, count, route.path, route.summary(t)))
        return sorted(found, key=lambda holder: len(holder.path))

    def _settle(self) -> None:
        """Pass all changes on, component by component, each once."""
        while self._queue:
            rank = self._queue[0][0]
            component = []
            while self._queue and self._queue[0][0] == rank:
                component.append(self._places[heapq.heappop(self._queue)[1]])
            for place in component:
                place.is_queued = False
                changes = place.local.settle()
                if place.reached is None:
                    self._pass_on(place, changes)
                else:
                    _tell_inside(place, changes)
            for member, _ in component[0].inside:
                assert member.reached is not None
                self._pass_on(member, member.reached.settle())

    def _pass_on(self, place: _Place, changes: list[tuple[Any, int]]) -> None:
        """Tell the next components how a frontier has changed."""
        if not changes:
            return
        place.frontier = None
        self._moved[place.name] = None
        for target, summaries in place.outside:
            target.local.add_along(summaries, changes)
            if not target.is_queued:
                target.is_queued = True
                heapq.heappush(self._queue, (target.rank, target.name))


def _at_wrong_depth(place: _Place, time: Any) -> InputError:
    return InputError(
        Problem(
            "wrong-depth",
            f"{place.name!r} is in {many(place.depth, 'loop')}, and {time!r} has "
            f"{many(len(rounds_of(time)), 'round')}",
            "inside loops a time is Product(t, rounds) with one round for each loop",
        )
    )


def _tell_inside(place: _Place, changes: list[tuple[Any, int]]) -> None:
    for target, summaries in place.inside if changes else ():
        assert target.reached is not None
        target.reached.add_along(summaries, changes)


def _places(graph: Graph, routes: Mapping[str, Mapping[str, Any]]) -> dict[str, _Place]:
    """A place for each location, wired to those it tells of its changes.

    What a location can reach shrinks from component to component, so the number of distinct sizes
    orders the components; those of one size do not reach each other and are told apart.
    """
    component = {x: frozenset(y for y in routes[x] if x in routes[y]) for x in graph.locations}
    order = sorted(set(component.values()), key=lambda c: (-len(routes[min(c)]), min(c)))
    rank = {x: order.index(component[x]) for x in graph.locations}
    places = {x: _Place(x, rank[x], graph.depth[x]) for x in graph.locations}
    for x, place in places.items():
        place.outside = [
            (places[y], tuple(minimal(summaries)))
            for y, summaries in graph.arcs[x]
            if y not in component[x]
        ]
        if len(component[x]) > 1:
            place.reached = _Minima()
            place.inside = [
                (places[y], tuple(route.summary for route in routes[x][y]))
                for y in sorted(component[x])
            ]
    return places
