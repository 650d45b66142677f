"""The frontiers of all locations, maintained incrementally as pointstamps come and go.

P3's Clock is the set of pointstamps that live ones could result in. Its part at a location is
upward closed, so its minimal times represent it: the frontier. `Progress` maintains the frontiers
incrementally; `locations` describes how changes propagate.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cutwater.errors import InputError, Problem, many
from cutwater.progress.graph import Graph, positive_cycles, unknown_location
from cutwater.progress.locations import Cycle, LocationState, location_states
from cutwater.progress.minima import CountChanges
from cutwater.times import Antichain, rounds_of

__all__ = ["Holder", "Progress"]


@dataclass(frozen=True, slots=True)
class Holder:
    """A live pointstamp that keeps a time at another location from being complete."""

    location: str
    time: Any
    count: int
    """The number of messages or requests at this time."""
    path: tuple[str, ...]
    """A path by which it could result in that time; a shortest of those with minimal summaries."""
    arrival: Any
    """The least time at which it could arrive by this path."""


class Progress:
    """Tracks which times may still arrive at each location of a graph.

    Raises `FlowError` with the path of a cycle that does not advance the time.

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
        self._states = location_states(graph, self._routes)
        self._by_number = list(self._states.values())
        self._queue: list[int] = []
        """The numbers of locations with changes, as a heap."""
        self._touched: dict[LocationState, None] = {}

    def update(self, location: str, time: Any, change: int) -> None:
        """Add `change` to the number of messages or requests at a location and time.

        Raises `InputError` if the number would become negative, if there is no such location, or if
        the time has not as many rounds as the location has loops.
        """
        state = self._state_at(location, time)
        local = state.local
        entry = local.entries.get(time)
        before = 0 if entry is None else entry.live
        count = before + change
        if count < 0:
            raise _fewer_than_none(location, time, before, change)
        # A frontier depends only on whether there are any, not on how many.
        if came := (count > 0) - (before > 0):
            if state.relays is not None:
                state.stop_relaying()
            entry = local.add(time, came)
            self._enqueue(state)
        if entry is not None:
            entry.live = count

    def _state_at(self, location: str, time: Any) -> LocationState:
        state = self._states.get(location) or self._state_of(location)
        if len(rounds_of(time)) != state.depth:
            raise _at_wrong_depth(state, time)
        return state

    def _state_of(self, location: str) -> LocationState:
        try:
            return self._states[location]
        except KeyError:
            raise unknown_location(location, self.graph) from None

    def frontier(self, location: str) -> Antichain:
        """The least times at which something is at a location or may still arrive there."""
        state = self._state_of(location)
        self._settle()
        return state.frontier if state.frontier is not None else state.current()

    def is_complete(self, location: str, time: Any) -> bool:
        """Can nothing arrive at the location any more at or before this time?"""
        state = self._state_at(location, time)
        self._settle()
        return not state.current().less_equal(time)

    def moved(self) -> dict[str, Antichain]:
        """The frontiers that have changed since the last call."""
        self._settle()
        found = {}
        for state in self._touched:
            if state.current() != state.reported:
                found[state.name] = state.reported = state.current()
        self._touched.clear()
        return found

    def live(self) -> Iterator[tuple[str, Any, int]]:
        """Every pointstamp with its count."""
        for state in self._states.values():
            for entry in state.local.entries.values():
                if entry.live:
                    yield state.name, entry.time, entry.live

    def holders(self, location: str, time: Any) -> list[Holder]:
        """The pointstamps that could result in ``(location, time)``, nearest first.

        Each has a path by which it could. The list is empty exactly if the time is complete.
        """
        self._state_at(location, time)
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
        """Propagate all changes, visiting each component once."""
        while self._queue:
            state = self._dequeue()
            if state.cycle is not None:
                self._settle_cycle(state.cycle, [state, *self._rest_of(state.rank)])
            elif changes := state.local.settle():
                self._pass_on(state, changes)

    def _rest_of(self, rank: int) -> Iterator[LocationState]:
        """Dequeue the other queued members of a component."""
        while self._queue and self._by_number[self._queue[0]].rank == rank:
            yield self._dequeue()

    def _settle_cycle(self, cycle: Cycle, queued: list[LocationState]) -> None:
        """Propagate the changes on a cycle to its exits, and from there to their successors.

        What moves from one member to another mostly cancels out at the exits, so they receive the
        changes of all times, not only of each member's minimal ones, which would have to be found
        first.
        """
        is_changed = False
        for state in queued:
            if counted := state.local.counted():
                is_changed = True
                changes = [(entry.time, change) for entry, change in counted]
                for target, summaries in state.exits:
                    assert target.reached is not None
                    target.reached.add_along(summaries, changes)
        for exit_ in cycle.exits:
            assert exit_.reached is not None
            if changed := exit_.reached.settle():
                self._pass_on(exit_, changed)
        if is_changed and cycle.is_read:
            cycle.is_read = False
            for state in cycle.inner:
                self._touch(state)

    def _pass_on(self, state: LocationState, changes: CountChanges) -> None:
        """Propagate the changes of a frontier to the next components."""
        todo = [state]
        for here in todo:
            self._touch(here)
            for target, summaries in here.outside:
                if target.relays is not None:
                    todo.append(target)
                else:
                    target.local.add_along(summaries, changes)
                    self._enqueue(target)

    def _touch(self, state: LocationState) -> None:
        if state.frontier is not None:  # otherwise already touched
            state.frontier = None
            self._touched[state] = None

    def _enqueue(self, state: LocationState) -> None:
        if not state.is_queued:
            state.is_queued = True
            heapq.heappush(self._queue, state.number)

    def _dequeue(self) -> LocationState:
        state = self._by_number[heapq.heappop(self._queue)]
        state.is_queued = False
        return state


def _fewer_than_none(location: str, time: Any, before: int, change: int) -> InputError:
    return InputError(
        Problem(
            "fewer-than-none",
            f"{location!r} has {before} at {time!r}, fewer than the {-change} to be removed",
            "count what is sent before it is received",
        )
    )


def _at_wrong_depth(state: LocationState, time: Any) -> InputError:
    return InputError(
        Problem(
            "wrong-depth",
            f"{state.name!r} is in {many(state.depth, 'loop')}, and {time!r} has "
            f"{many(len(rounds_of(time)), 'round')}",
            "inside loops a time is Product(t, rounds) with one round for each loop",
        )
    )
