"""Cuts a loop at its back edge: Spark then runs an acyclic flow, one round per epoch.

Feedback is written to a log and read one epoch later; what leaves the loop is written to another
log, and read when nothing circulates any more. The body's steps thus become steps of the flow,
each in the buckets of its keys::

    in ──► merge ──► body ──► again ─ ─ (log) ─ ─► merge, in the next epoch
             ▲         └────► left  ─ ─ (log) ─ ─► what reads the loop, when the loop is empty
    again ───┘

A cut loop is equivalent to the whole one (`operators.loop`) if nothing in it or after it can
distinguish a round from an epoch. Otherwise `why_whole` gives the reason, and all rounds run in
one epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from cutwater.annotations import is_known
from cutwater.codec import Codec
from cutwater.errors import FlowError, Problem
from cutwater.flow import steps as s
from cutwater.flow.inference import infer, loop_types
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.timely.bodies import with_bodies
from cutwater.flow.timely.own_names import FED_BACK, LEFT

__all__ = [
    "cut",
    "iteration_phrase",
    "log_name",
    "loop_sentences",
    "loop_to_cut",
    "plan_problems",
    "why_whole",
]


def loop_sentences(steps: Sequence[s.Step], why_no_log: str = "") -> Iterator[str]:
    """How each loop with a key_by in its body iterates on Spark."""
    for step in steps:
        if isinstance(step, s.Iterate) and step.has_exchange:
            yield f"loop '{step.name}': {iteration_phrase(steps, step, why_no_log)}"


def iteration_phrase(steps: Sequence[s.Step], step: s.Iterate, why_no_log: str = "") -> str:
    """How a loop iterates on Spark, as a phrase; with the reason if it is kept in one bucket.

    `why_no_log` is the reason if a run has no log for any loop.
    """
    if loop_to_cut(steps) is step and not why_no_log:
        how = "one after the other, since its body keeps state" if step.keeps_state else "at once"
        inner = (each for each in with_bodies(step.body) if isinstance(each, s.Iterate))
        apart = [f"'{each.name}' in it in one bucket" for each in inner if each.has_exchange]
        return "; ".join([f"one iteration per epoch, input epochs {how}", *apart])
    if not step.has_exchange:
        return "all iterations in one epoch"
    why = _why_in_one_bucket(steps, step, why_no_log)
    return f"all iterations in one epoch, in one bucket: {why}"


def _why_in_one_bucket(steps: Sequence[s.Step], step: s.Iterate, why_no_log: str) -> str:
    number = next((n for n, each in enumerate(steps) if each is step), None)
    if number is None:
        return "it is in the body of another loop"
    if step.plan == "epoch":
        return "plan='epoch'"
    other = loop_to_cut(steps)
    why = why_whole(steps, number, infer(steps, numbered=int)[0])
    return why or why_no_log or f"'{other.name if other else ''}' has the log"


def loop_to_cut(steps: Sequence[s.Step], types: Sequence[StreamType] = ()) -> s.Iterate | None:
    """The loop that feeds back through a log: the first that can, unless its plan is "epoch"."""
    loops = [step for step in steps if isinstance(step, s.Iterate) and step.plan != "epoch"]
    types = types or (infer(steps, numbered=int)[0] if loops else ())
    numbers = {id(step): number for number, step in enumerate(steps)}
    return next((p for p in loops if not why_whole(steps, numbers[id(p)], types)), None)


def plan_problems(steps: Sequence[s.Step]) -> Iterator[Problem]:
    """Loops that request an unknown plan, or one they cannot have."""
    if not any(isinstance(step, s.Iterate) for step in steps):
        return
    types = infer(steps, numbered=int)[0]
    chosen = loop_to_cut(steps, types)
    for number, step in enumerate(steps):
        if isinstance(step, s.Iterate) and step.plan == "log" and step is not chosen:
            why = why_whole(steps, number, types) or f"'{chosen and chosen.name}' has the log"
            yield Problem(
                "loop-without-log",
                f"{step.title} has plan='log', and cannot run one iteration per epoch: {why}",
                "leave plan out: its iterations then run inside one epoch",
            )
    for step in with_bodies(steps):
        if not isinstance(step, s.Iterate):
            continue
        if step.plan == "log" and not any(step is each for each in steps):
            yield Problem(
                "loop-without-log",
                f"{step.title} has plan='log', and is in the body of another loop",
                "leave plan out: its iterations then run inside an iteration of the other",
            )
        if step.plan not in (None, "epoch", "log"):
            yield Problem(
                "unknown-plan",
                f"{step.title} has plan={step.plan!r}; a loop iterates within an 'epoch' or "
                "through a 'log'",
                "leave plan out: a body with a key_by then uses the log if possible",
            )


def why_whole(steps: Sequence[s.Step], number: int, types: Sequence[StreamType]) -> str:
    """Why a loop cannot be cut, as a clause that ends a message; empty if it can."""
    step = steps[number]
    assert isinstance(step, s.Iterate)
    if not step.has_exchange:
        return "its body stays with its key, so each key iterates by itself"
    if min(step.again, step.out, *step.inputs) < 0:
        return "its body is not complete"
    for inner in with_bodies(step.body):
        if not isinstance(inner, s.Iterate) and _uses_times(inner):
            return (
                f"'{inner.name}' in its body depends on event times, which include the iteration "
                "there"
            )
    for reader, other in _beside(steps, number):
        return f"'{reader.name}' downstream of it also reads '{other.name}', in another epoch"
    return _unkept(step, types[step.inputs[0]])


def _uses_times(step: s.Step) -> bool:
    is_expiring = isinstance(step, s.Apply) and step.expire_after is not None
    return step.waits or step.reads_times or is_expiring


def _before(steps: Sequence[s.Step], number: int) -> list[s.Step]:
    return [steps[n] for n in sorted(_leading_to(steps, number))]


def _leading_to(steps: Sequence[s.Step], number: int) -> set[int]:
    """The numbers of all steps upstream of a step."""
    found: set[int] = set()
    for n in steps[number].inputs:
        found |= {n, *_leading_to(steps, n)}
    return found


def _beside(steps: Sequence[s.Step], number: int) -> Iterator[tuple[s.Step, s.Step]]:
    """Steps after a loop, each with an input that does not come out of the loop."""
    behind = {number}
    for n, step in enumerate(steps):
        if behind.intersection(step.inputs):
            behind.add(n)
            yield from ((step, steps[i]) for i in step.inputs if i not in behind)


def _unkept(step: s.Iterate, stream: StreamType) -> str:
    """The part of a loop that a log or an exchange has no codec for, as a clause; or empty."""
    types = loop_types(step, stream)[0]
    for inner, stream in zip(step.body, types, strict=True):
        if not _has_codec(stream.value):
            return f"what '{inner.name}' in its body emits has a type that cannot be serialised"
    return "" if _has_codec(stream.time) else "its times have a type that cannot be serialised"


def _has_codec(tp: Any) -> bool:
    try:
        Codec(tp)
    except FlowError:
        return False
    return is_known(tp)


def cut(steps: Sequence[s.Step]) -> tuple[s.Step, ...]:
    """The steps with a loop cut at its back edge; unchanged if no loop can be cut."""
    loop = loop_to_cut(steps)
    if loop is None:
        return tuple(steps)
    types = infer(steps, numbered=int)[0]
    made: list[s.Step] = []
    numbers: dict[int, int] = {}
    for number, step in enumerate(steps):
        if step is loop:
            origins = [each for each in _before(steps, number) if isinstance(each, s.Source)]
            made += _in_the_open(loop, len(made), numbers, types[loop.inputs[0]], origins)
        else:
            made.append(replace(step, inputs=tuple(numbers[i] for i in step.inputs)))
        numbers[number] = len(made) - 1
    return tuple(made)


def _in_the_open(
    loop: s.Iterate,
    first: int,
    numbers: dict[int, int],
    stream: StreamType,
    origins: Sequence[s.Source],
) -> Iterator[s.Step]:
    """A loop inlined after the `first` steps of the flow; the stream that leaves comes last."""
    types = loop_types(loop, stream)[0]
    outside = replace(stream, key=None)
    has_watermarks = all(each.watermark is not None or each.time is None for each in origins)

    def out_of_log(number: int, is_again: bool) -> s.FromLog:
        stream = replace(outside, value=types[number].value)
        return s.FromLog(
            name=log_name(loop.name, is_again),
            where=loop.where,
            type=stream.value,
            stream=stream,
            loop=loop.name,
            max_rounds=loop.max_rounds,
            is_again=is_again,
            origins=tuple(each.name for each in origins),
            has_watermarks=has_watermarks and not is_again,
            overlaps=not loop.keeps_state,
        )

    yield out_of_log(loop.again, True)
    inputs = (numbers[loop.inputs[0]], first)
    yield s.Merge(name=loop.name, where=loop.where, inputs=inputs)
    for step in loop.body[1:]:
        yield replace(step, inputs=tuple(first + 1 + i for i in step.inputs))
    for number, is_again in ((loop.again, True), (loop.out, False)):
        name = log_name(loop.name, is_again)
        yield s.ToLog(
            name=name,
            where=loop.where,
            inputs=(first + 1 + number,),
            loop=loop.name,
            is_again=is_again,
        )
    yield out_of_log(loop.out, False)


def log_name(loop: str, is_again: bool) -> str:
    """The name of a loop's log, shared by its writer and its reader."""
    return f"{FED_BACK if is_again else LEFT}{loop}"
