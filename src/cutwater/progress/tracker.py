"""Frontiers of all locations, kept up to date while pointstamps come and go.

P3's Clock is the set of pointstamps that live ones could result in. Its part at a location is
upward closed, so its minimal times stand for it: the frontier. `Progress` keeps these, and changes
them by what changed; `places` says how changes travel.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cutwater.errors import InputError, Problem, many
from cutwater.progress.graph import Graph, positive_cycles, unknown_location
from cutwater.progress.minima import Changes
from cutwater.progress.places import Cycle, Place, places_of
from cutwater.times import Antichain, rounds_of

__all__ = ["Holder", "Progress"]


@dataclass(frozen=True, slots=True)
class Holder:
    """A live pointstamp that holds a time at another location."""

    location: str
    time: Any
    count: int
    """How many messages or requests there are at this time."""
    path: tuple[str, ...]
    """A way by which it could result in it; of those with minimal summaries a shortest."""
    arrival: Any
    """The least time at which it could arrive on this way."""


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
        self._places = places_of(graph, self._routes)
        self._by_number = list(self._places.values())
        self._queue: list[int] = []
        """The numbers of places with changes, as a heap."""
        self._touched: dict[Place, None] = {}

    def update(self, location: str, time: Any, change: int) -> None:
        """Count so many more (or fewer) messages or requests at a location and time.

        Raises `InputError` if there would be fewer than none, or if the time is not in as many
        loops as the location.
        """
        place = self._place_of(location, time)
        local = place.local
        entry = local.entries.get(time)
        before = 0 if entry is None else entry.live
        count = before + change
        if count < 0:
            raise _fewer_than_none(location, time, before, change)
        # How many there are is no matter to a frontier, only whether there is one.
        if came := (count > 0) - (before > 0):
            if place.relays is not None:
                place.stop_relaying()
            entry = local.add(time, came)
            self._enqueue(place)
        if entry is not None:
            entry.live = count

    def _place_of(self, location: str, time: Any) -> Place:
        place = self._places.get(location) or self._place(location)
        if len(rounds_of(time)) != place.depth:
            raise _at_wrong_depth(place, time)
        return place

    def _place(self, location: str) -> Place:
        try:
            return self._places[location]
        except KeyError:
            raise unknown_location(location, self.graph) from None

    def frontier(self, location: str) -> Antichain:
        """The least times at which something may still come to a location, or is there."""
        place = self._place(location)
        self._settle()
        return place.frontier if place.frontier is not None else place.current()

    def is_complete(self, location: str, time: Any) -> bool:
        """Can nothing come to the location any more at this time or before it?"""
        place = self._place_of(location, time)
        self._settle()
        return not place.current().less_equal(time)

    def moved(self) -> dict[str, Antichain]:
        """The frontiers that differ from what they were when this was asked last."""
        self._settle()
        found = {}
        for place in self._touched:
            if place.current() != place.told:
                found[place.name] = place.told = place.current()
        self._touched.clear()
        return found

    def live(self) -> Iterator[tuple[str, Any, int]]:
        """Every pointstamp with its count."""
        for place in self._places.values():
            for entry in place.local.entries.values():
                if entry.live:
                    yield place.name, entry.time, entry.live

    def holders(self, location: str, time: Any) -> list[Holder]:
        """The pointstamps that could result in ``(location, time)``, nearest first.

        Each with a path by which it could; there are none exactly if the time is complete.
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
            place = self._dequeue()
            if place.cycle is not None:
                self._settle_cycle(place.cycle, [place, *self._rest_of(place.rank)])
            elif changes := place.local.settle():
                self._pass_on(place, changes)

    def _rest_of(self, rank: int) -> Iterator[Place]:
        """What else is queued of a component."""
        while self._queue and self._by_number[self._queue[0]].rank == rank:
            yield self._dequeue()

    def _settle_cycle(self, cycle: Cycle, queued: list[Place]) -> None:
        """Tell the exits of a cycle what has changed on it, and the exits those behind them.

        What goes from one member to another mostly cancels out at the exits, so they are told of
        all times, not only of each member's minimal ones, which would have to be found first.
        """
        is_changed = False
        for place in queued:
            if counted := place.local.counted():
                is_changed = True
                changes = [(entry.time, change) for entry, change in counted]
                for target, summaries in place.exits:
                    assert target.reached is not None
                    target.reached.add_along(summaries, changes)
        for exit_ in cycle.exits:
            assert exit_.reached is not None
            if changed := exit_.reached.settle():
                self._pass_on(exit_, changed)
        if is_changed and cycle.is_read:
            cycle.is_read = False
            for place in cycle.inner:
                self._touch(place)

    def _pass_on(self, place: Place, changes: Changes) -> None:
        """Tell the next components how a frontier has changed."""
        todo = [place]
        for here in todo:
            self._touch(here)
            for target, summaries in here.outside:
                if target.relays is not None:
                    todo.append(target)
                else:
                    target.local.add_along(summaries, changes)
                    self._enqueue(target)

    def _touch(self, place: Place) -> None:
        if place.frontier is not None:  # else it is among the touched already
            place.frontier = None
            self._touched[place] = None

    def _enqueue(self, place: Place) -> None:
        if not place.is_queued:
            place.is_queued = True
            heapq.heappush(self._queue, place.number)

    def _dequeue(self) -> Place:
        place = self._by_number[heapq.heappop(self._queue)]
        place.is_queued = False
        return place


def _fewer_than_none(location: str, time: Any, before: int, change: int) -> InputError:
    return InputError(
        Problem(
            "fewer-than-none",
            f"{location!r} has {before} at {time!r}, and {-change} were to go",
            "count what is sent before it is received",
        )
    )


def _at_wrong_depth(place: Place, time: Any) -> InputError:
    return InputError(
        Problem(
            "wrong-depth",
            f"{place.name!r} is in {many(place.depth, 'loop')}, and {time!r} has "
            f"{many(len(rounds_of(time)), 'round')}",
            "inside loops a time is Product(t, rounds) with one round for each loop",
        )
    )
