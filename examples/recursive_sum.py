"""A sum that calls itself for both halves of a list, and what the order of its times buys.

The body is ``in → leaf → out`` for a single number, and ``in → l, r → add → out`` for more. `add`
waits until a call is complete, then adds what its calls returned. A time is a stack of calls: both
halves come before their caller, and neither waits for the other.

Recursion exists in the model (`cutwater.semantics.timely`), not on Spark: this tries every order in
which messages and notifications may come.

    python examples/recursive_sum.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cutwater.checking import always, check_model, sometimes
from cutwater.progress import Edge
from cutwater.semantics.timely.clock import Clock
from cutwater.semantics.timely.dataflow import (
    Dataflow,
    Message,
    Notified,
    Processor,
    Reaction,
    TimelyEvent,
    reaction,
)
from cutwater.semantics.timely.model import Point, TimelyModel
from cutwater.semantics.timely.recursion import CallClock, Recursion, Stack
from cutwater.semantics.timely.relation import CouldResultIn

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
NUMBERS = (1, 2, 4)

TimeOf = Callable[[str, Stack], Any]
"""The time of a stack at a node."""


def edge(source: str, target: str) -> str:
    """The name of an edge."""
    return f"{source} → {target}"


def summing(time: TimeOf, depth: int) -> Dataflow:
    """The sum for calls up to a depth.

    Values are ``(stack, numbers or sum)``, so that they find their way whatever times are.
    """

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


def by_stacks(**options: Any) -> TimelyModel:
    """Every run of the sum with stacks as times."""
    dataflow = summing(BODY.time, depth=2)
    ask = Message(BODY.time("in", ()), ((), NUMBERS))
    return TimelyModel(dataflow, {"ask": [ask]}, clock=CallClock(dataflow, BODY), **options)


def by_one_time() -> TimelyModel:
    """The same with one time for all calls: what `add` sends may come back to it."""
    dataflow = summing(lambda node, stack: 0, depth=2)
    routes = {x: dataflow.graph.routes(x) for x in dataflow.graph.locations}
    relation = CouldResultIn(
        {(x, 0): {(y, 0): known[0].path for y, known in routes[x].items()} for x in routes}
    )
    ask = Message(0, ((), NUMBERS))
    return TimelyModel(dataflow, {"ask": [ask]}, clock=Clock(dataflow, relation))


def result(model: TimelyModel, point: Point) -> tuple[int, ...]:
    """What the outermost call has returned."""
    found: tuple[int, ...] = point.configuration.states[model.dataflow.number["out"]]
    return found


def is_over(point: Point) -> bool:
    """Is nothing left to do?"""
    return not any(point.configuration.queues) and not any(point.configuration.requests)


def has_added_right_before_left(model: TimelyModel, point: Point) -> bool:
    """Has `add` emitted the sum of the right half, with the left half still under way?"""
    queues = point.configuration.queues
    added = queues[model.dataflow.edge_number[edge("add", "out")]]
    stacks = [message.value[0] for queue in queues for message in queue]
    return ("r",) in [message.value[0] for message in added] and ("l",) in stacks


def main() -> None:
    """Explore both, and print what was found."""
    left, right, whole = (BODY.time("add", stack) for stack in [("l",), ("r",), ()])
    print(f"{left} <= {whole}: {left <= whole}; {right} <= {whole}: {right <= whole}")
    print(f"{left} <= {right}: {left <= right}; {right} <= {left}: {right <= left}")
    model = by_stacks()
    right_sum = always("right", lambda p: not is_over(p) or result(model, p) == (sum(NUMBERS),))
    on_time = always("on time", lambda p: model.late(p) is None)
    found = check_model(model, [right_sum, on_time])
    print(f"stacks as times, right and on time in all {found.unique_states} states: {found.holds}")
    for words, is_reordering in (("may overtake", True), ("stay in line", False)):
        early = by_stacks(is_reordering=is_reordering)
        added = sometimes("early", lambda p, early=early: has_added_right_before_left(early, p))
        found = check_model(early, [added])
        print(f"messages {words}, r is added before l has come: {'early' in found.discoveries}")
    one = by_one_time()
    found = check_model(one, [sometimes("a result", lambda p: bool(result(one, p)))])
    print(f"one time for all calls, a result in any run: {'a result' in found.discoveries}")


if __name__ == "__main__":
    main()
