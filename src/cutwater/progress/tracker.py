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
from cutwater.progress.places import Place, places_of
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
        self._queue: list[tuple[int, str]] = []
        self._touched: dict[Place, None] = {}

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
        self._enqueue(place)

    def _place_of(self, location: str, time: Any) -> Place:
        place = self._place(location)
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
        return place.current()

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
            for time, count in place.live.items():
                yield place.name, time, count

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
            rank = self._queue[0][0]
            component = []
            while self._queue and self._queue[0][0] == rank:
                component.append(self._places[heapq.heappop(self._queue)[1]])
            if component[0].members:
                self._settle_cycle(component)
            else:
                [place] = component
                place.is_queued = False
                self._pass_on(place, place.local.settle())

    def _settle_cycle(self, component: list[Place]) -> None:
        """Tell the exits of a cycle what has changed on it, and the exits those behind them."""
        is_changed = False
        for place in component:
            place.is_queued = False
            if changes := place.local.settle():
                is_changed = True
                for target, summaries in place.exits:
                    assert target.reached is not None
                    target.reached.add_along(summaries, changes)
        if is_changed:
            for member, _ in component[0].members:
                if member.reached is not None:
                    self._pass_on(member, member.reached.settle())
                else:
                    self._touch(member)

    def _pass_on(self, place: Place, changes: list[tuple[Any, int]]) -> None:
        """Tell the next components how a frontier has changed."""
        if not changes:
            return
        self._touch(place)
        for target, summaries in place.outside:
            target.local.add_along(summaries, changes)
            self._enqueue(target)

    def _touch(self, place: Place) -> None:
        if place.frontier is not None:  # else it is among the touched already
            place.frontier = None
            self._touched[place] = None

    def _enqueue(self, place: Place) -> None:
        if not place.is_queued:
            place.is_queued = True
            heapq.heappush(self._queue, (place.rank, place.name))


def _at_wrong_depth(place: Place, time: Any) -> InputError:
    return InputError(
        Problem(
            "wrong-depth",
            f"{place.name!r} is in {many(place.depth, 'loop')}, and {time!r} has "
            f"{many(len(rounds_of(time)), 'round')}",
            "inside loops a time is Product(t, rounds) with one round for each loop",
        )
    )
