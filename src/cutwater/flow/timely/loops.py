"""The bodies of loops: the types of their streams, and their problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from cutwater.annotations import union_of
from cutwater.errors import Problem
from cutwater.flow import steps as s
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.timely.bodies import with_bodies
from cutwater.times import Product

__all__ = ["body_problems", "body_types", "leaving"]

_Inferred = tuple[list[StreamType], list[Problem]]
"""The types of the steps of a body, and the problems found on the way."""
_Infer = Callable[[Sequence[s.Step], StreamType], _Inferred]
"""Infers them from the type of what enters."""

_MOST_TRIES = 5
"""How often feedback may widen the type of what enters before it counts as unknown."""


def _entering(step: s.Iterate, stream: StreamType, value: Any) -> StreamType:
    """The stream that enters the body, if it carries such values."""
    key = None if step.has_exchange else stream.key
    return replace(stream, value=value, time=Product, key=key, is_numbered=False)


def body_types(step: s.Iterate, stream: StreamType, infer: _Infer) -> _Inferred:
    """The type of each step of the body, where inputs and feedback enter as one stream."""
    value = stream.value
    for _ in range(_MOST_TRIES):
        types, problems = infer(step.body, _entering(step, stream, value))
        wider = union_of([value, types[step.again].value])
        if wider == value:
            return types, problems
        value = wider
    return infer(step.body, _entering(step, stream, Any))


def leaving(step: s.Iterate, stream: StreamType, types: Sequence[StreamType]) -> StreamType:
    """The type of the stream that leaves the loop."""
    key = _entering(step, stream, Any).key
    return replace(stream, value=types[step.out].value, key=key)


def _states_that_wait(step: s.Iterate) -> Iterator[Problem]:
    """Steps of a body that wait for times to complete, though their states end with the epoch."""
    for inner in with_bodies(step.body):
        is_expiring = isinstance(inner, s.Apply) and inner.expire_after is not None
        if not isinstance(inner, s.Iterate) and (inner.waits or is_expiring):
            yield Problem(
                "state-ends-too-early",
                f"{inner.title} is in the body of {step.title}, and waits until times are "
                "complete; with state_per_epoch its state ends with the epoch, before that",
                "leave state_per_epoch out, or let the step read the loop's output",
            )


def body_problems(step: s.Iterate) -> Iterator[Problem]:
    """The problems of a body, except those of types and names."""
    if step.again < 0 or step.out < 0:
        yield Problem(
            "not-a-body",
            f"the body of {step.title} returned something not derived from its stream; it "
            "returns one stream, or two: the feedback, and the output",
            "for example iterate(lambda stream: (stream.filter(is_open), stream.filter(is_done)))",
        )
        return
    if step.again == 0:
        yield Problem(
            "endless-loop",
            f"{step.title} feeds back everything it receives, unchanged, so it never ends",
            "let its body feed back what has changed: a filter, a flat_map or a task",
        )
    rounds = step.max_rounds
    if rounds is not None and (not isinstance(rounds, int) or rounds is True or rounds < 1):
        yield Problem(
            "not-a-number-of-rounds",
            f"{step.title} has max_rounds={rounds!r}; it is an integer, at least 1",
            "leave it out to iterate until nothing is fed back",
        )
    if step.state_per_epoch:
        yield from _states_that_wait(step)
    for inner in step.body:
        if isinstance(inner, (s.Source, s.Sink)):
            yield Problem(
                "end-in-a-loop",
                f"{inner.title} is in the body of {step.title}; a loop has no input or output "
                "but its own streams",
                "merge sources before the loop, and connect its output to the sink",
            )
        if isinstance(inner, s.JoinClocks):
            yield Problem(
                "clocks-in-a-loop",
                f"{inner.title} is in the body of {step.title}; in a loop all streams have one "
                "clock, that of its rounds",
                "join the clocks before the loop",
            )
    read = {number for inner in step.body for number in inner.inputs} | {step.again, step.out}
    for number, inner in enumerate(step.body):
        if number not in read and not isinstance(inner, s.Sink):
            yield Problem(
                "unused-step",
                f"the output of {inner.title} is read by nothing",
                "feed it back or return it as the output, or remove it",
            )
