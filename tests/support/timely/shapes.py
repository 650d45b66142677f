"""Small dataflows that are searched exhaustively."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from support.progress.graphs import DIAMOND

from cutwater.progress import EGRESS, FEEDBACK, INGRESS, Edge, add
from cutwater.semantics.timely.dataflow import (
    Dataflow,
    Message,
    Notified,
    Processor,
    Reaction,
    TimelyEvent,
    buffer,
    reaction,
)
from cutwater.semantics.timely.model import Input, Notify, Output, Point, Receive, TimelyModel
from cutwater.times import Left, Product, Right

NONE: frozenset[Any] = frozenset()


def m(*times: Any) -> list[Message]:
    return [Message(t) for t in times]


def collect(name: str, out: str, initial: Iterable[Any] = ()) -> Processor:
    """Sends one message for every time it was sent to, when the time is complete."""

    def g1(seen: frozenset[Any], event: TimelyEvent) -> Reaction:
        if isinstance(event, Notified):
            sent = m(event.time) if event.time in seen else []
            return reaction(seen - {event.time}, {out: sent})
        return reaction(seen | {event.time}, requests=[event.time])

    return Processor(name, g1, ((NONE, frozenset(initial)),))


def send(
    name: str, *outs: str, shift: Callable[[Any], Any] = lambda t: t, within: Any = None
) -> Processor:
    """Sends on what comes at once, at a shifted time if there is such a time."""

    def g1(state: None, event: TimelyEvent) -> Reaction:
        if isinstance(event, Notified):
            return reaction(state)
        there = shift(event.time)
        is_there = there is not None and (within is None or there in within)
        return reaction(state, {out: m(there) for out in outs} if is_there else {})

    return Processor(name, g1)


def dataflow(
    processors: Iterable[Processor], edges: Iterable[Edge], times: Iterable[Any]
) -> Dataflow:
    finite = tuple(times)
    return Dataflow(tuple(processors), tuple(edges), finite, tuple(map(Message, finite)))


TWO, THREE = (0, 1), (0, 1, 2)

PIPELINE = dataflow(
    [collect("count", "counts"), collect("again", "out")],
    [Edge("in", None, "count"), Edge("counts", "count", "again"), Edge("out", "again", None)],
    THREE,
)
JOIN = dataflow(
    [send("left", "l"), collect("both", "out")],
    [
        Edge("in", None, "left"),
        Edge("l", "left", "both"),
        Edge("other", None, "both"),
        Edge("out", "both", None),
    ],
    TWO,
)
INCOMPARABLE = dataflow(
    [collect("count", "counts"), send("relay", "out")],
    [Edge("in", None, "count"), Edge("counts", "count", "relay"), Edge("out", "relay", None)],
    DIAMOND,
)


def loop(shift: Callable[[Any], Any], amount: int = 1, waits: bool = True) -> Dataflow:
    """What `work` sends, at once or at completion, goes out and round at another time."""
    work = collect("work", "there") if waits else send("work", "there")
    return dataflow(
        [work, send("again", "back", "out", shift=shift, within=THREE)],
        [
            Edge("in", None, "work"),
            Edge("there", "work", "again"),
            Edge("back", "again", "work", (add(amount),)),
            Edge("out", "again", None, (add(amount),)),
        ],
        THREE,
    )


LOOP = loop(lambda t: t + 1)
PAST = loop(lambda t: t - 1, amount=-1, waits=False)
"""A loop in which times decrease: Condition 2 does not hold."""
WAITING_FOR_ITSELF = loop(lambda t: t - 1, amount=-1)


def rounds(turns: int = 1) -> Dataflow:
    """A loop with ingress, feedback and egress; everything goes round so many times."""

    def turn(state: None, event: TimelyEvent) -> Reaction:
        t = event.time
        if isinstance(event, Notified) or not isinstance(t, Product):
            return reaction(state)
        if t.second[0] < turns:
            return reaction(state, {"next": m(Product(t.first, (t.second[0] + 1,)))})
        return reaction(state, {"out": m(t.first)})

    inside = [Product(t, (r,)) for t in TWO for r in range(turns + 1)]
    enter = send("enter", "first", shift=lambda t: None if t in inside else Product(t, (0,)))
    return dataflow(
        [enter, collect("work", "there"), Processor("turn", turn), collect("last", "end")],
        [
            Edge("in", None, "enter"),
            Edge("first", "enter", "work", (INGRESS,)),
            Edge("there", "work", "turn"),
            Edge("next", "turn", "work", (FEEDBACK,)),
            Edge("out", "turn", "last", (EGRESS,)),
            Edge("end", "last", None),
        ],
        [*TWO, *inside],
    )


DOMAINS = dataflow(
    [
        send("stamp", "numbered", shift=lambda t: Right(t.time) if isinstance(t, Left) else None),
        collect("count", "out"),
    ],
    [
        Edge("in", None, "stamp"),
        Edge("numbered", "stamp", "count"),
        Edge("out", "count", None),
    ],
    [Left(0), Left(1), Right(0), Right(1)],
)

BUFFERED = dataflow(
    [collect("count", "c"), buffer("relay", "out")],
    [Edge("in", None, "count"), Edge("c", "count", "relay"), Edge("out", "relay", None)],
    TWO,
)

SHAPES = {
    "pipeline": (PIPELINE, {"in": m(1, 0, 2)}),
    "join": (JOIN, {"in": m(0, 1), "other": m(1, 0)}),
    "incomparable": (INCOMPARABLE, {"in": m(*DIAMOND[1:])}),
    "loop": (LOOP, {"in": m(0, 1)}),
    "past": (PAST, {"in": m(2, 0)}),
    "rounds": (rounds(), {"in": m(0, 1)}),
    "domains": (DOMAINS, {"in": m(Left(1), Left(0))}),
    "buffered": (BUFFERED, {"in": m(1, 0)}),
}


def transitions(model: TimelyModel) -> Iterator[tuple[Point, Any, Point]]:
    """Every step from every reachable point."""
    todo, seen = list(model.initial_states()), set()
    while todo:
        point = todo.pop()
        if point in seen:
            continue
        seen.add(point)
        for move in model.actions(point):
            there = model.step(point, move)
            yield point, move, there
            todo.append(there)


def shown(moves: Iterable[Any]) -> str:
    """Moves as a reader writes them: ``in, p@1, +in@0, -out``."""
    return ", ".join(map(_shown, moves))


def _shown(move: Any) -> str:
    match move:
        case Receive(edge, position):
            return f"{edge}[{position}]" if position else edge
        case Notify(node, time):
            return f"{node}@{time}"
        case Input(edge, message):
            return f"+{edge}@{message.time}"
        case Output(edge, _):
            return f"-{edge}"
    raise AssertionError(move)
