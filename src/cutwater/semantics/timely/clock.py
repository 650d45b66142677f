"""Where work may remain: P3's Clock, and substitutes for it (sections 3.3 and 4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cutwater.progress.tracker import Progress
from cutwater.semantics.timely.actions import Configuration, Pointstamp, pointstamps
from cutwater.semantics.timely.dataflow import Dataflow
from cutwater.semantics.timely.relation import CouldResultIn
from cutwater.times import rounds_of

__all__ = ["Clock", "ReachedClock", "TrackedClock", "close", "least", "reached"]


def close(relation: CouldResultIn, stamps: Iterable[Pointstamp]) -> frozenset[Pointstamp]:
    """Close↑: the least set with these that is closed under could-result-in; a fixed point."""
    found = set(stamps)
    todo = list(found)
    while todo:
        for stamp in relation.after(todo.pop()):
            if stamp not in found:
                found.add(stamp)
                todo.append(stamp)
    return frozenset(found)


def reached(relation: CouldResultIn, stamps: Iterable[Pointstamp]) -> frozenset[Pointstamp]:
    """Proposition 3's formula: what some pointstamp could result in; `close` under Condition 2."""
    return frozenset(there for stamp in stamps for there in relation.after(stamp))


def least(relation: CouldResultIn, stamps: Iterable[Pointstamp]) -> list[Pointstamp]:
    """The minimal pointstamps, one of each class of equivalent ones.

    Under Condition 2 they represent all: `reached` from them is `reached` from all. Without it they
    may reach less.
    """
    found: list[Pointstamp] = []
    for stamp in dict.fromkeys(stamps):
        if not any(relation(other, stamp) for other in found):
            found = [other for other in found if not relation(stamp, other)]
            found.append(stamp)
    return found


class Clock:
    """P3's Clock: Close↑ of the pointstamps of messages and requests."""

    def __init__(self, dataflow: Dataflow, relation: CouldResultIn) -> None:
        self.dataflow, self.relation = dataflow, relation
        self._known: dict[frozenset[Pointstamp], frozenset[Pointstamp]] = {}

    def __call__(self, c: Configuration) -> frozenset[Pointstamp]:
        """The pointstamps for which work may remain."""
        stamps = frozenset(pointstamps(self.dataflow, c))
        if stamps not in self._known:
            self._known[stamps] = self.of(stamps)
        return self._known[stamps]

    def of(self, stamps: frozenset[Pointstamp]) -> frozenset[Pointstamp]:
        """The clock of these pointstamps; a variant overrides it."""
        return close(self.relation, stamps)


class ReachedClock(Clock):
    """The clock by Proposition 3's formula, which is P3's only under Condition 2."""

    def of(self, stamps: frozenset[Pointstamp]) -> frozenset[Pointstamp]:
        """What these pointstamps could result in, each in one proof."""
        return reached(self.relation, stamps)


class TrackedClock:
    """The clock that `Progress` keeps from the summaries of the edges: P3's, conservatively.

    It is updated by the pointstamps that changed since the configuration of the last call.
    """

    def __init__(self, dataflow: Dataflow) -> None:
        self.dataflow = dataflow
        self._progress = Progress(dataflow.graph)
        self._live: Counter[Pointstamp] = Counter()

    def __call__(self, c: Configuration) -> frozenset[Pointstamp]:
        """The pointstamps for which work may remain, as far as summaries show."""
        live = Counter(pointstamps(self.dataflow, c))
        for stamp in live.keys() | self._live.keys():
            if change := live[stamp] - self._live[stamp]:
                self._progress.update(*stamp, change)
        self._live = live
        depth = self.dataflow.graph.depth
        return frozenset(
            (x, t)
            for x in self.dataflow.graph.locations
            for t in self.dataflow.times
            if len(rounds_of(t)) == depth[x] and not self._progress.is_complete(x, t)
        )
