"""P3 word by word over plain dictionaries, slow: what the model is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from cutwater.semantics.timely.behaviour import one_step
from cutwater.semantics.timely.dataflow import Dataflow, Notified, Received, precedes


def could_result_in(dataflow: Dataflow, start: tuple[str, Any]) -> set[tuple[str, Any]]:
    """Definition 2: sequences of pointstamps with distinct locations."""
    steps, found = one_step(dataflow), set()

    def walk(places: tuple[str, ...], t: Any) -> None:
        found.update((places[-1], u) for u in dataflow.times if precedes(t, u))
        x = places[-1]
        for edge in dataflow.edges:
            if edge.name == x and edge.target and edge.target not in places:
                walk((*places, edge.target), t)
            if edge.source == x and edge.name not in places:
                for t1, t2, u in product(dataflow.times, repeat=3):
                    sent = steps.get((x, t1), ())
                    if precedes(t, t1) and precedes(t2, u) and (edge.name, t2) in sent:
                        walk((*places, edge.name), u)

    for t in dataflow.times:
        if precedes(start[1], t):
            walk((start[0],), t)
    return found


def clock(relation: dict[Any, set[Any]], s: dict[str, Any]) -> set[Any]:
    """Close↑ of what is there, by adding until nothing is added."""
    found = {(e, m.time) for e, queue in s["Q"].items() for m in queue}
    found |= {(p, t) for p, times in s["NotRequests"].items() for t in times}
    while True:
        more = found.union(*(relation[stamp] for stamp in found))
        if more == found:
            return found
        found = more


def successors(
    dataflow: Dataflow, relation: dict[Any, set[Any]], s: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Mess and Not."""
    now = clock(relation, s)
    for p in dataflow.processors:
        incoming = [e.name for e in dataflow.edges if e.target == p.name]
        for e in incoming:
            if s["Q"][e]:
                m, *rest = s["Q"][e]
                yield _done(s, p, Received(e, m), {e: tuple(rest)}, s["NotRequests"][p.name])
        for t in s["NotRequests"][p.name]:
            if all((e, t) not in now for e in incoming):
                yield _done(s, p, Notified(t), {}, s["NotRequests"][p.name] - {t})


def _done(
    s: dict[str, Any], p: Any, event: Any, dequeued: dict[str, Any], requests: frozenset[Any]
) -> dict[str, Any]:
    g1 = p.g1(s["LocState"][p.name], event)
    queues = {**s["Q"], **dequeued}
    for e, messages in g1.sent:
        queues[e] = queues[e] + messages
    return {
        "LocState": {**s["LocState"], p.name: g1.state},
        "NotRequests": {**s["NotRequests"], p.name: requests | g1.requests},
        "Q": queues,
    }


def count(dataflow: Dataflow, inputs: dict[str, Any]) -> int:
    """The number of reachable states."""
    stamps = [(x, t) for x in dataflow.graph.locations for t in dataflow.times]
    relation = {stamp: could_result_in(dataflow, stamp) for stamp in stamps}
    start = {
        "LocState": {p.name: p.initial[0][0] for p in dataflow.processors},
        "NotRequests": {p.name: p.initial[0][1] for p in dataflow.processors},
        "Q": {e.name: tuple(inputs.get(e.name, ())) for e in dataflow.edges},
    }
    todo, seen = [start], set()
    while todo:
        s = todo.pop()
        key = frozenset((kind, frozenset(of.items())) for kind, of in s.items())
        if key not in seen:
            seen.add(key)
            todo += successors(dataflow, relation, s)
    return len(seen)
