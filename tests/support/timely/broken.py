"""Clocks and processors with one thing broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.timely.shapes import NONE, THREE, collect, dataflow, m, send

from cutwater.progress import Edge
from cutwater.semantics.timely.clock import Clock
from cutwater.semantics.timely.dataflow import (
    Dataflow,
    Notified,
    Processor,
    Reaction,
    TimelyEvent,
    precedes,
    reaction,
)


class WithoutRequests(Clock):
    """Looks at messages only."""

    def of(self, stamps):
        return super().of(frozenset(s for s in stamps if s[0] not in self.dataflow.number))


class WithoutMessages(Clock):
    """Looks at requests only."""

    def of(self, stamps):
        return super().of(frozenset(s for s in stamps if s[0] in self.dataflow.number))


class WithoutInputs(Clock):
    """Takes what has not been read from outside for not there."""

    def of(self, stamps):
        inputs = {edge.name for edge in self.dataflow.inputs}
        return super().of(frozenset(s for s in stamps if s[0] not in inputs))


class NotClosed(Clock):
    """Knows what is where, and not what it leads to."""

    def of(self, stamps):
        return frozenset((x, u) for x, t in stamps for u in self.dataflow.times if precedes(t, u))


class OneNodeFurther(Clock):
    """Looks as far as the next edge."""

    def of(self, stamps):
        return frozenset(
            b for a in stamps for b in self.relation.after(a) if len(self.relation.path(a, b)) <= 3
        )


class Strictly(Clock):
    """Takes a time for complete while something is still at it: only what is before counts."""

    def of(self, stamps):
        return frozenset(
            (x, u)
            for x, t in super().of(stamps)
            for u in self.dataflow.times
            if precedes(t, u) and t != u
        )


class OneEdge(Clock):
    """Overlooks the second input of a node."""

    def of(self, stamps):
        return frozenset(s for s in super().of(stamps) if s[0] != "other")


class AsIfTotal(Clock):
    """Takes incomparable times for ordered by their names: what is behind is complete."""

    def of(self, stamps):
        closed = super().of(stamps)
        last = {x: max(t.name for y, t in closed if y == x) for x, _ in closed}
        return frozenset((x, t) for x, t in closed if t.name >= min(last[x], 2))


def past_requests(on: Callable[[TimelyEvent], bool]) -> Dataflow:
    """`ask` asks for a time before that of some events, and answers at it."""

    def ask(state: Any, event: TimelyEvent) -> Reaction:
        sent = m(event.time) if isinstance(event, Notified) else []
        asked = [event.time - 1] if on(event) and event.time > 0 else []
        later = [] if isinstance(event, Notified) else [event.time]
        return reaction(state, {"out": sent}, requests=asked + later)

    return dataflow(
        [Processor("ask", ask)], [Edge("in", None, "ask"), Edge("out", "ask", None)], THREE
    )


ASKS_ON_MESSAGES = past_requests(lambda event: not isinstance(event, Notified))
ASKS_ON_NOTIFICATIONS = past_requests(lambda event: isinstance(event, Notified))


def forgetful(state: frozenset[Any], event: TimelyEvent) -> Reaction:
    """Sends what it has at the first time it ever saw, whatever the event."""
    first = state or frozenset({event.time})
    return reaction(first, {"out": m(*first)})


KEEPS_TO_NO_SUMMARY = dataflow(
    [Processor("first", forgetful, ((NONE, frozenset()),))],
    [Edge("in", None, "first"), Edge("out", "first", None)],
    THREE,
)
"""It sends into the past where its edge claims the identity; no cycle, so Condition 2 holds."""

LONG_JOIN = dataflow(
    [collect("count", "counts"), send("relay", "relayed"), collect("both", "out")],
    [
        Edge("in", None, "count"),
        Edge("counts", "count", "relay"),
        Edge("relayed", "relay", "both"),
        Edge("other", None, "both"),
        Edge("out", "both", None),
    ],
    THREE[:2],
)
"""`both` hears of a time by one edge while it is on its way, in many ways, to the other."""

LONG_LOOP = dataflow(
    [
        send("a", "ab"),
        send("b", "bc", shift=lambda t: t + 1, within=THREE),
        send("c", "ca", "out", shift=lambda t: t - 2, within=THREE),
    ],
    [
        Edge("in", None, "a"),
        Edge("ab", "a", "b"),
        Edge("bc", "b", "c"),
        Edge("ca", "c", "a"),
        Edge("out", "c", None),
    ],
    THREE,
)
"""Three nodes, of which one goes on and one goes back by more."""
