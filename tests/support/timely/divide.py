"""A recursive divide and conquer: a sum that calls itself for both halves of a list.

The body is ``in → leaf → out`` for a single number, and ``in → l, r → add → out`` for more. `add`
waits until a call is complete, then adds what its calls returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cutwater.progress import Edge
from cutwater.semantics.timely.dataflow import (
    Dataflow,
    Message,
    Notified,
    Processor,
    Reaction,
    TimelyEvent,
    reaction,
)
from cutwater.semantics.timely.recursion import Recursion, Stack

BODY = Recursion(
    [
        ("in", "leaf"),
        ("leaf", "out"),
        ("in", "l"),
        ("in", "r"),
        ("l", "add"),
        ("r", "add"),
        ("add", "out"),
    ],
    calls=["l", "r"],
)

TimeOf = Callable[[str, Stack], Any]
"""How a node and a stack are made a time."""


def edge(source: str, target: str) -> str:
    return f"{source} → {target}"


def summing(time: TimeOf, depth: int) -> Dataflow:
    """Values are ``(stack, numbers or sum)``, so that they find their way whatever times are."""

    def sends(target: str, source: str, stack: Stack, value: Any) -> dict[str, list[Message]]:
        return {edge(source, target): [Message(time(target, stack), (stack, value))]}

    def divide(state: Any, event: TimelyEvent) -> Reaction:
        if isinstance(event, Notified):
            return reaction(state)
        stack, numbers = event.message.value
        if len(numbers) == 1:
            return reaction(state, sends("leaf", "in", stack, numbers[0]))
        half = len(numbers) // 2
        left = sends("call-l", "in", stack, numbers[:half])
        return reaction(state, left | sends("call-r", "in", stack, numbers[half:]))

    def relay(name: str, target: str, change: Callable[[Stack], Stack]) -> Processor:
        def g1(state: Any, event: TimelyEvent) -> Reaction:
            if isinstance(event, Notified):
                return reaction(state)
            stack, value = event.message.value
            return reaction(state, sends(target, name, change(stack), value))

        return Processor(name, g1)

    def add(sums: frozenset[Any], event: TimelyEvent) -> Reaction:
        if not isinstance(event, Notified):
            return reaction(sums | {(event.edge, event.message.value)}, requests=[event.time])
        stacks = {stack for _, (stack, _) in sums if time("add", stack) == event.time}
        sent = [
            Message(time("out", stack), (stack, sum(v for _, (s, v) in sums if s == stack)))
            for stack in sorted(stacks)
        ]
        rest = frozenset(known for known in sums if known[1][0] not in stacks)
        return reaction(rest, {edge("add", "out"): sent})

    def out(result: Any, event: TimelyEvent) -> Reaction:
        if isinstance(event, Notified):
            return reaction(result)
        stack, value = event.message.value
        if not stack:
            return reaction((*result, value))
        return reaction(result, sends(f"ret-{stack[-1]}", "out", stack[:-1], value))

    processors = [
        Processor("in", divide),
        relay("leaf", "out", lambda f: f),
        *(relay(f"call-{c}", "in", lambda f, c=c: (*f, c)) for c in "lr"),
        *(relay(f"ret-{c}", "add", lambda f: f) for c in "lr"),
        Processor("add", add, ((frozenset(), frozenset()),)),
        Processor("out", out, (((), frozenset()),)),
    ]
    edges = [Edge(edge(p, q), p, q) for p, q in BODY.graph_edges]
    stacks: list[Stack] = [()]
    for _ in range(depth):
        stacks += [(*f, c) for f in stacks for c in "lr" if (*f, c) not in stacks]
    times = tuple(dict.fromkeys(time(p, f) for f in stacks for p in BODY.nodes))
    return Dataflow(tuple(processors), (Edge("ask", None, "in"), *edges), times, ())
