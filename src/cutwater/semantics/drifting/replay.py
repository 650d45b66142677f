"""Drifting state and its conservative alternative on one long input, in virtual time.

`speculate` is one fast run of what `model` explores: elements arrive in any order, groupings
retract, outputs the frontier has passed are released, crashes restore the last snapshot.
`wait_in_order` is the alternative: an element waits until the frontier has passed it and is then
processed once, in order. Both release the same outputs, and count the cost (`Cost`).

Everything runs sequentially on one node. Processing a window takes a fixed time; sending takes
none.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from cutwater.semantics.drifting.elements import (
    BEGIN,
    EMPTY,
    END_OF_INPUT,
    Change,
    Element,
    Group,
    Grouping,
    Root,
    Time,
    collected,
    fold,
    regroup,
    settled_group,
)

__all__ = ["Arrival", "Cost", "Replayed", "frontiers", "speculate", "wait_in_order"]


class Arrival(NamedTuple):
    """An input, the time it was made and the time it arrives."""

    element: Element
    made: int = 0
    at: int = 0


@dataclass
class Cost:
    """The cost of a run."""

    windows: int = 0
    """Windows processed, including those retracted later."""
    retracted: int = 0
    """Elements sent and later retracted."""
    most_held: int = 0
    """The peak number of elements held: in groups, waiting, or at the barrier."""
    latencies: list[int] = field(default_factory=list)
    """For each output, the time from the making of its input to its release."""


@dataclass(frozen=True)
class Replayed:
    """The outputs of a run, in order of release, and its cost."""

    released: tuple[Element, ...]
    cost: Cost


def frontiers(arrivals: Sequence[Arrival]) -> list[Root]:
    """The frontier after each arrival: the first input that has not arrived yet."""
    roots = sorted(arrival.element.t.root for arrival in arrivals)
    ranks = {root: n for n, root in enumerate(roots)}
    has_come = [False] * len(roots)
    first, found = 0, []
    for arrival in arrivals:
        has_come[ranks[arrival.element.t.root]] = True
        while first < len(roots) and has_come[first]:
            first += 1
        found.append(roots[first] if first < len(roots) else END_OF_INPUT)
    return found


def speculate(
    flow: Sequence[Grouping],
    arrivals: Sequence[Arrival],
    *,
    work: int = 0,
    snapshot_every: int = 0,
    crashes: Collection[int] = (),
) -> Replayed:
    """Process inputs as they arrive; release outputs the frontier has passed.

    Parameters
    ----------
    arrivals
        Inputs with different times, in the order in which they arrive.
    work
        How long one window takes.
    snapshot_every
        Arrivals between two snapshots; 0 for none.
    crashes
        The numbers of arrivals after which everything but the snapshot and released outputs is
        lost. Inputs that the snapshot does not cover arrive again, in their original order.
    """
    run = _Speculation(flow, work)
    bounds = frontiers(arrivals)
    for arrived, (arrival, frontier) in enumerate(zip(arrivals, bounds, strict=True), 1):
        run.arrive(arrival)
        run.release(frontier)
        if snapshot_every and arrived % snapshot_every == 0:
            run.snapshot(frontier)
        if arrived in crashes:
            run.recover()
            for again in arrivals[:arrived]:
                if again.element.t.root >= run.snapshot_at:
                    run.arrive(again)
            run.release(frontier)
    return Replayed(tuple(run.released), run.cost)


class _Speculation:
    """One run; it keeps in one object what the protocol distributes over several agents."""

    def __init__(self, flow: Sequence[Grouping], work: int) -> None:
        self.flow, self.work = flow, work
        self.released: list[Element] = []
        self.cost = Cost()
        self.snapshot_at: Root = BEGIN
        self._stored: dict[tuple[int, int], Group] = {}
        self._made: dict[Root, int] = {}
        self._idle_from = 0
        self._order = count()
        """Breaks ties in the heap; of values that share one t only one is left when it is due."""
        self.recover()

    def recover(self) -> None:
        """Restore the snapshot; t_last comes from the released outputs."""
        self._frontier: Root = BEGIN
        self._groups = dict(self._stored)
        self._held = sum(len(group.present) for group in self._groups.values())
        self._touched = set(self._groups)
        self._outputs: Counter[Element] = Counter()
        self._waiting: list[tuple[Time, int, Element]] = []
        self._last: Time | None = self.released[-1].t if self.released else None

    def arrive(self, arrival: Arrival) -> None:
        self._made[arrival.element.t.root] = arrival.made
        before = self.cost.windows
        changes = [Change(arrival.element)]
        for step, grouping in enumerate(self.flow):
            changes = [sent for change in changes for sent in self._work(step, grouping, change)]
        for output, sign in changes:
            self._count(output, sign)
        busy = self.work * (self.cost.windows - before)
        self._idle_from = max(self._idle_from, arrival.at) + busy
        self.cost.most_held = max(self.cost.most_held, self._held + len(self._outputs))

    def _work(self, step: int, grouping: Grouping, change: Change) -> Sequence[Change]:
        address = (step, grouping.key(change.element.value))
        before = self._groups.get(address, EMPTY)
        self._groups[address], sent = regroup(grouping, step, before, change)
        self._touched.add(address)
        self._held += len(self._groups[address].present) - len(before.present)
        taken_back = sum(sign < 0 for _, sign in sent)
        self.cost.retracted += taken_back
        self.cost.windows += len(sent) - taken_back
        return sent

    def _count(self, output: Element, sign: int) -> None:
        if self._last is not None and output.t <= self._last:
            return
        self._outputs[output] += sign
        if not self._outputs[output]:
            del self._outputs[output]
        elif sign > 0:
            heapq.heappush(self._waiting, (output.t, next(self._order), output))

    def release(self, frontier: Root) -> None:
        """Release what the frontier has passed, in order of t; evict what no window needs."""
        if frontier == self._frontier:
            return
        self._frontier = frontier
        for output in self._due(frontier):
            self.released.append(output)
            self.cost.latencies.append(self._idle_from - self._made[output.t.root])
            self._last = output.t
        for address in sorted(self._touched):
            group = self._groups[address]
            kept = collected(self.flow[address[0]], group, frontier)
            self._held += len(kept.present) - len(group.present)
            self._groups[address] = kept
            if len(kept.present) < self.flow[address[0]].window:
                self._touched.discard(address)

    def _due(self, frontier: Root) -> Iterator[Element]:
        while self._waiting and self._waiting[0][0].root < frontier:
            output = heapq.heappop(self._waiting)[2]
            if self._outputs.pop(output, 0) > 0:
                yield output

    def snapshot(self, frontier: Root) -> None:
        """Take a snapshot, complete at once: everything before the frontier was released."""
        self.snapshot_at = frontier
        self._stored = {
            address: settled_group(self.flow[address[0]], group, frontier)
            for address, group in self._groups.items()
        }


def wait_in_order(
    flow: Sequence[Grouping], arrivals: Sequence[Arrival], *, work: int = 0
) -> Replayed:
    """Buffer inputs until the frontier has passed them, then process them in order of t."""
    cost, released = Cost(), list[Element]()
    windows: list[dict[int, deque[Any]]] = [{} for _ in flow]
    waiting: list[Arrival] = []
    idle_from = 0
    for arrival, frontier in zip(arrivals, frontiers(arrivals), strict=True):
        waiting.insert(bisect_left(waiting, arrival.element.t, key=_time), arrival)
        kept = sum(len(window) for step in windows for window in step.values())
        cost.most_held = max(cost.most_held, len(waiting) + kept)
        passed = bisect_left(waiting, frontier, key=lambda waits: waits.element.t.root)
        ready, waiting = waiting[:passed], waiting[passed:]
        idle_from = max(idle_from, arrival.at)
        for element, made, _ in ready:
            outputs = [element]
            for step, grouping in enumerate(flow):
                outputs = fold(grouping, step, outputs, windows[step])
                cost.windows += len(outputs)
                idle_from += work * len(outputs)
            released += outputs
            cost.latencies += [idle_from - made] * len(outputs)
    return Replayed(tuple(released), cost)


def _time(arrival: Arrival) -> Time:
    return arrival.element.t
