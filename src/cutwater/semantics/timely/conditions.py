"""Conditions 1 and 2 of P3 (section 3.2): no node asks for, or sends into, the past.

Both are sufficient for Theorem 2, not necessary. A violation is a result with a sentence: which
node, when, and along which path.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cutwater.errors import Problem
from cutwater.semantics.timely.behaviour import one_step, requested
from cutwater.semantics.timely.dataflow import Dataflow, Received, TimelyEvent, precedes
from cutwater.semantics.timely.relation import CouldResultIn

__all__ = ["PastMessage", "PastRequest", "condition_1", "condition_2"]


@dataclass(frozen=True)
class PastRequest:
    """A node that asks to be notified of a time that is not at or after the event it handles."""

    node: str
    event: TimelyEvent
    time: Any
    """What it asks for."""

    @property
    def problem(self) -> Problem:
        """The violation in words."""
        event = self.event
        trigger = (
            f"gets a message at {event.time!r} on {event.edge!r}"
            if isinstance(event, Received)
            else f"is notified of {event.time!r}"
        )
        return Problem(
            "request-in-the-past",
            f"{self.node!r} asks to be notified of {self.time!r} when it {trigger}; "
            "a request is for the time of its event or a later one",
            "ask for the time of the event",
        )


@dataclass(frozen=True)
class PastMessage:
    """An event at a node that may come back to it at a time that is not the same or later."""

    node: str
    time: Any
    back_at: Any
    """When it comes back."""
    path: tuple[str, ...]
    """From the node around to the edge on which it comes back."""
    sender: str
    """The node on the path that sends into the past; if the times along the path have several
    domains and none can be blamed, the last one that sends."""

    @property
    def problem(self) -> Problem:
        """The violation in words."""
        return Problem(
            "message-in-the-past",
            f"what comes to {self.node!r} at {self.time!r} may come back to it at "
            f"{self.back_at!r}, along {' → '.join(self.path)} → {self.node}: {self.sender!r} sends "
            "into the past; round a cycle times must not decrease",
            f"let {self.sender!r} send at the time of its event, or later",
        )


def condition_1(dataflow: Dataflow) -> list[PastRequest]:
    """The violations of Condition 1: if (p, t) ⤳_N (p, t') then t <= t'. One for each node."""
    found: dict[str, PastRequest] = {}
    for request in requested(dataflow):
        if not precedes(request.event.time, request.time):
            past = PastRequest(request.node, request.event, request.time)
            found.setdefault(request.node, past)
    return list(found.values())


def condition_2(dataflow: Dataflow, relation: CouldResultIn) -> list[PastMessage]:
    """The violations of Condition 2: if (p, t) ⤳ (e, t'), e leads to p, then t <= t'.

    One for each node and incoming edge, with a shortest path.
    """
    found = []
    for edge in dataflow.internal:
        assert edge.target is not None
        past = [
            (relation.path((edge.target, t), (edge.name, u)), t, u)
            for t in dataflow.times
            for u in dataflow.times
            if not precedes(t, u) and relation((edge.target, t), (edge.name, u))
        ]
        if past:
            path, t, u = min(past, key=lambda known: len(known[0]))
            found.append(PastMessage(edge.target, t, u, path, _sender(dataflow, path)))
    return found


def _sender(dataflow: Dataflow, path: tuple[str, ...]) -> str:
    steps = one_step(dataflow)
    nodes = [(x, y) for x, y in pairwise(path) if x in dataflow.number]
    for node, edge in nodes:
        for t in dataflow.times:
            sent = [u for along, u in steps.get((node, t), ()) if along == edge]
            if any(not precedes(t, u) for u in sent):
                return node
    return nodes[-1][0]
