"""The bodies of loops: what their streams carry, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cutwater.annotations import union_of
from cutwater.errors import Problem
from cutwater.flow import steps as s
from cutwater.times import Product

if TYPE_CHECKING:  # which infers by what is here
    from cutwater.flow.inference import StreamType

__all__ = ["body_problems", "body_types", "leaving"]

_Inferred = tuple["list[StreamType]", list[Problem]]
"""The types of the steps of a body, and the problems found on the way."""
_Infer = Callable[[Sequence[s.Step], "StreamType"], _Inferred]
"""Infers them by the type of what enters."""

_MOST_TRIES = 5
"""So often what is fed back may widen what enters; then its type is unknown."""


def _entering(step: s.Iterate, given: StreamType, value: Any) -> StreamType:
    """What enters the body, if it carries such values."""
    key = None if step.has_exchange else given.key
    return replace(given, value=value, time=Product, key=key, is_numbered=False)


def body_types(step: s.Iterate, given: StreamType, infer: _Infer) -> _Inferred:
    """The type of each step of the body: what enters is what came in, or what was fed back."""
    value = given.value
    for _ in range(_MOST_TRIES):
        types, problems = infer(step.body, _entering(step, given, value))
        wider = union_of([value, types[step.again].value])
        if wider == value:
            return types, problems
        value = wider
    return infer(step.body, _entering(step, given, Any))


def leaving(step: s.Iterate, given: StreamType, types: Sequence[StreamType]) -> StreamType:
    """What leaves the loop."""
    key = _entering(step, given, Any).key
    return replace(given, value=types[step.out].value, key=key)


def body_problems(step: s.Iterate) -> Iterator[Problem]:
    """What is wrong with a body, its types and names apart."""
    if step.again < 0 or step.out < 0:
        yield Problem(
            "not-a-body",
            f"the body of {step.title} returned something that it did not make of its stream; it "
            "returns one stream, or two: what goes round again, and what leaves",
            "for example iterate(lambda stream: (stream.filter(is_open), stream.filter(is_done)))",
        )
        return
    if step.again == 0:
        yield Problem(
            "endless-loop",
            f"{step.title} feeds back all that it gets, unchanged, so nothing in it ever ends",
            "let its body feed back what has changed: a filter, a flat_map or a task",
        )
    rounds = step.max_rounds
    if rounds is not None and (not isinstance(rounds, int) or rounds is True or rounds < 1):
        yield Problem(
            "not-a-number-of-rounds",
            f"{step.title} has max_rounds={rounds!r}; it is a whole number, at least 1",
            "leave it out for as many rounds as there are",
        )
    for inner in step.body:
        if isinstance(inner, (s.Source, s.Sink)):
            yield Problem(
                "end-in-a-loop",
                f"{inner.title} is in the body of {step.title}; a loop is entered and left by its "
                "own streams alone",
                "merge sources before the loop, and lead what leaves it to the sink",
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
                "let it go round again or leave the loop, or remove it",
            )
