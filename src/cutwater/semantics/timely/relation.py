"""Could-result-in (P3, section 3): Definition 2, Theorem 1 and Proposition 2."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cutwater.semantics.timely.actions import Pointstamp
from cutwater.semantics.timely.behaviour import one_step
from cutwater.semantics.timely.dataflow import Dataflow, precedes

__all__ = ["CouldResultIn", "UniversalTime", "could_result_in"]


@dataclass(frozen=True)
class UniversalTime:
    """A pointstamp in the order of Proposition 2: the "GMT" of timely dataflow."""

    later: frozenset[Pointstamp]
    """All that it could result in; equal for equivalent pointstamps."""

    def __le__(self, other: UniversalTime) -> bool:
        return self.later >= other.later


class CouldResultIn:
    """The relation ⤳ on the pointstamps of a finite dataflow, with a shortest proof for each pair.

    ``relation((x, t), (y, u))`` tells whether (x, t) ⤳ (y, u).
    """

    def __init__(self, proofs: Mapping[Pointstamp, Mapping[Pointstamp, tuple[str, ...]]]) -> None:
        self.proofs = proofs
        """For each pointstamp those it could result in, with the locations of a proof."""

    def __call__(self, a: Pointstamp, b: Pointstamp) -> bool:
        """Does a ⤳ b hold?"""
        return b in self.proofs[a]

    def after(self, a: Pointstamp) -> Iterable[Pointstamp]:
        """All that a pointstamp could result in."""
        return self.proofs[a].keys()

    def path(self, a: Pointstamp, b: Pointstamp) -> tuple[str, ...]:
        """The locations of a shortest proof of a ⤳ b; their number is its length."""
        return self.proofs[a][b]

    @cached_property
    def intransitive(self) -> tuple[Pointstamp, Pointstamp, Pointstamp] | None:
        """Three pointstamps with a ⤳ b ⤳ c and not a ⤳ c; None if it is transitive."""
        for a, reached in self.proofs.items():
            for b in reached:
                for c in self.proofs[b]:
                    if c not in reached:
                        return a, b, c
        return None

    def embedding(self) -> dict[Pointstamp, UniversalTime] | None:
        """Proposition 2: a mapping into one partial order that represents ⤳; None if there is none.

        A pointstamp is mapped to the set of what it could result in, and these are ordered by
        inclusion. That requires ⤳ to be reflexive, which it is, and transitive, without which no
        mapping exists.
        """
        if self.intransitive is not None:
            return None
        return {a: UniversalTime(frozenset(reached)) for a, reached in self.proofs.items()}


def could_result_in(dataflow: Dataflow) -> CouldResultIn:
    """Definition 2, from what the processors do (Definition 1).

    Along every path of distinct locations; where it comes back, the paper's relation ends.
    """
    steps = one_step(dataflow)
    stamps = [(x, t) for x in dataflow.graph.locations for t in dataflow.times]
    return CouldResultIn({(x, t): _proofs(dataflow, steps, x, t) for x, t in stamps})


def _proofs(
    dataflow: Dataflow, steps: Mapping[Pointstamp, frozenset[Pointstamp]], x: str, t: Any
) -> dict[Pointstamp, tuple[str, ...]]:
    """Every pointstamp after one, with a shortest path to it."""
    found: dict[Pointstamp, tuple[str, ...]] = {}
    todo: deque[tuple[tuple[str, ...], frozenset[Any]]] = deque()
    todo.append(((x,), _upward(dataflow, [t])))
    while todo:
        path, times = todo.popleft()
        for time in times:
            found.setdefault((path[-1], time), path)
        for location in _next(dataflow, path[-1]):
            if location not in path and (
                there := _times_at(dataflow, steps, path[-1], times, location)
            ):
                todo.append(((*path, location), there))
    return found


def _next(dataflow: Dataflow, location: str) -> list[str]:
    if location in dataflow.number:
        return [edge.name for edge in dataflow.outgoing(location)]
    target = dataflow.edges[dataflow.edge_number[location]].target
    return [] if target is None else [target]


def _times_at(
    dataflow: Dataflow,
    steps: Mapping[Pointstamp, frozenset[Pointstamp]],
    location: str,
    times: frozenset[Any],
    further: str,
) -> frozenset[Any]:
    """The times at a location one step on, given an upward closed set of times here."""
    if location not in dataflow.number:
        return times
    sent = (there for time in times for there in steps.get((location, time), ()))
    return _upward(dataflow, [time for edge, time in sent if edge == further])


def _upward(dataflow: Dataflow, times: Iterable[Any]) -> frozenset[Any]:
    least = list(times)
    return frozenset(u for u in dataflow.times if any(precedes(t, u) for t in least))
