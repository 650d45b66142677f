"""Flows with loops, and an interpreter of the same loops that knows nothing of rounds at once.

The interpreter takes messages one by one in a random order and asks `cutwater.progress` whether a
notification may be delivered: P3's clock, not the lockstep of `operators.loop`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import cutwater as cw
from cutwater.progress import EGRESS, FEEDBACK, INGRESS, Edge, Graph, Progress
from cutwater.times import in_rounds, rounds_of

Held = tuple[tuple[Any, int], ...]


def receive(held: Held, time: cw.Product, n: int) -> tuple[Held, list[int | cw.Notify]]:
    """Keep the number, and ask to be told when all of its round is there, and two rounds later."""
    *outer, innermost = rounds_of(time)
    later = in_rounds(time, (*outer, innermost + 2))
    return (*held, (time, n)), [cw.Notify(time), cw.Notify(later)]


def complete(held: Held, time: cw.Product) -> tuple[Held, list[int | cw.Notify]]:
    """One less than the sum of what came at this time; if nothing did, how much came up to it."""
    here = [n for at, n in held if at == time]
    return held, [max(sum(here) - 1, 0) if here else -sum(at <= time for at, _ in held)]


def inner_again(n: int) -> bool:
    return n > 0 and n % 3 != 0


def middle_again(n: int) -> bool:
    return n > 0 and n % 2 != 0


def outer_again(n: int) -> bool:
    return n > 4


AGAIN = (outer_again, middle_again, inner_again)


def nested(depth: int) -> cw.Flow:
    """Loops in loops; in the innermost numbers of one time and round are added up, less one."""
    flow = cw.Flow(f"depth {depth}")
    flow.sink("out", flow.source("numbers", int).iterate(_body(3 - depth)))
    return flow


def _body(level: int) -> Any:
    again = AGAIN[level]

    def body(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
        if level == 2:
            told = stream.on_complete(receive, complete, initial=(), name="told")
        else:
            told = stream.iterate(_body(level + 1), name=f"loop {level + 1}")
        return (
            told.filter(again, name=f"again {level}"),
            told.filter(lambda n: not again(n), name=f"out {level}"),
        )

    return body


@dataclass
class Interpreter:
    """The same loops, message by message."""

    depth: int
    seed: int

    def run(self, inputs: Iterable[tuple[Any, int]]) -> Counter[tuple[Any, int]]:
        """The numbers that leave, each with its time."""
        self.random = random.Random(self.seed)
        self.progress = Progress(_graph(self.depth))
        self.messages: list[tuple[str, Any, int]] = []
        self.requests: list[Any] = []
        self.held: Held = ()
        self.left: Counter[tuple[Any, int]] = Counter()
        for time, n in inputs:
            self._send("in", time, n)
        while self.messages or self.requests:
            due = [time for time in self.requests if self._is_complete(time)]
            if due and (not self.messages or self.random.random() < 0.5):
                self._notify(self.random.choice(due))
            else:
                self._take(self.messages.pop(self.random.randrange(len(self.messages))))
        return self.left

    def _is_complete(self, time: Any) -> bool:
        inputs = ["enter work", *(["again 0"] if self.depth else [])]
        return all(self.progress.is_complete(edge, time) for edge in inputs)

    def _notify(self, time: Any) -> None:
        self.requests.remove(time)
        self.held, outputs = complete(self.held, time)
        for n in outputs:
            self._send("told", time, n)
        self.progress.update("work", time, -1)

    def _take(self, message: tuple[str, Any, int]) -> None:
        edge, time, n = message
        if edge in ("enter work", "again 0"):
            self.held, requests = receive(self.held, time, n)
            for request in requests:
                if request.time not in self.requests:
                    self.requests.append(request.time)
                    self.progress.update("work", request.time, +1)
        else:
            self._route(edge, time, n)
        self.progress.update(edge, time, -1)

    def _route(self, edge: str, time: Any, n: int) -> None:
        if edge == "in" or edge.startswith("enter "):
            here = self.depth if edge == "in" else int(edge.split()[1])
            return self._enter(here, time, n)
        if edge.startswith("again "):
            return self._enter(int(edge.split()[1]), time, n)
        level = 0 if edge == "told" else int(edge.split()[1])
        if AGAIN[2 - level](n):
            self._send(f"again {level}", FEEDBACK(time), n)
        elif level == self.depth - 1:
            self.left[EGRESS(time), n] += 1
        else:
            self._send(f"left {level + 1}", EGRESS(time), n)
        return None

    def _enter(self, here: int, time: Any, n: int) -> None:
        target = "enter work" if here == 1 else f"enter {here - 1}"
        self._send(target, INGRESS(time), n)

    def _send(self, edge: str, time: Any, n: int) -> None:
        self.messages.append((edge, time, n))
        self.progress.update(edge, time, +1)


def _graph(depth: int) -> Graph:
    """Loops count from the innermost, 0: ``e`` enters the loop inside of it, ``r`` routes."""
    edges = [Edge("in", None, f"e{depth}"), Edge("told", "work", "r0")]
    for level in range(depth, 1, -1):
        edges.append(Edge(f"enter {level - 1}", f"e{level}", f"e{level - 1}", (INGRESS,)))
    edges.append(Edge("enter work", "e1", "work", (INGRESS,)))
    for level in range(depth):
        target = "work" if level == 0 else f"e{level}"
        edges.append(Edge(f"again {level}", f"r{level}", target, (FEEDBACK,)))
        onward = None if level == depth - 1 else f"r{level + 1}"
        edges.append(Edge(f"left {level + 1}", f"r{level}", onward, (EGRESS,)))
    return Graph(edges)


def left_of(simulation: Any, sink: str = "out") -> Counter[tuple[Any, int]]:
    """The numbers that a sink saw, each with its time."""
    events = [e for epoch in simulation.events[sink] for e in epoch if isinstance(e, cw.Data)]
    return Counter((event.time, event.value) for event in events)


def split(items: Sequence[Any], sizes: Iterable[int]) -> list[Any]:
    """The items with barriers between them."""
    found: list[Any] = []
    rest = list(items)
    for size in sizes:
        found += [*rest[:size], cw.BARRIER]
        rest = rest[size:]
    return [*found, *rest]
