"""Type inference: what every stream of a flow carries, by annotations, and type problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from cutwater.annotations import (
    element_of,
    fields_of,
    fits,
    members,
    signature_of,
    typename,
    union_of,
)
from cutwater.errors import CutwaterError, FlowError, Problem
from cutwater.flow import steps as s
from cutwater.flow.inferred.aggregations import type_of_aggregation, type_of_windows
from cutwater.flow.inferred.functions import check_is_function, check_takes
from cutwater.flow.inferred.operator_steps import buffer_problems, value_emitted
from cutwater.flow.inferred.problems import (
    check_length,
    needs_numbers,
    never_frees,
    type_of_field,
)
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.lengths import (
    has_predecessors,
    is_total,
)
from cutwater.flow.tasks import Task
from cutwater.flow.timely.loops import body_problems, body_types, leaving
from cutwater.flow.timely.requests import request_problems
from cutwater.flow.vector_tasks import VectorisedTask
from cutwater.flow.watermarks import BoundedDelay, LatePolicy
from cutwater.operators.batch import Pairs
from cutwater.operators.snapshot import counter_of
from cutwater.times import Product

__all__ = ["infer", "loop_types"]


def infer(
    steps: Sequence[s.Step], *, numbered: Any = Any, entering: StreamType | None = None
) -> tuple[list[StreamType], list[Problem]]:
    """The type of each step's output, and all problems found on the way.

    `numbered` is the type of the times of a source without a time field; `entering` is what enters,
    if these are the steps of a loop's body.
    """
    types: list[StreamType] = []
    problems: list[Problem] = []
    unknown: set[int] = set()
    for number, step in enumerate(steps):
        types.append(StreamType())
        # a step that reads an unknown type is not itself at fault
        if any(i not in range(number) or i in unknown for i in step.inputs):
            unknown.add(number)
            continue
        try:
            inputs = [types[i] for i in step.inputs] or [entering or StreamType()]
            types[number] = _output(step, inputs, problems, numbered)
        except FlowError as error:
            problems.extend(error.problems)
            unknown.add(number)
    return types, problems


def _output(
    step: s.Step, inputs: list[StreamType], problems: list[Problem], numbered: Any
) -> StreamType:
    stream = inputs[0]
    match step:
        case s.FromLog():
            known: StreamType = step.stream
            return known
        case s.Source():
            return _source(step, problems, numbered)
        case s.Map():
            check_takes(step, step.f, 0, stream.value, problems)
            return replace(stream, value=signature_of(step.f).result)
        case s.FlatMap():
            check_takes(step, step.f, 0, stream.value, problems)
            return replace(stream, value=element_of(signature_of(step.f).result))
        case s.Filter():
            check_takes(step, step.f, 0, stream.value, problems)
            return stream
        case s.MapValues() | s.Flatten() | s.Skip() | s.Bulk() | s.Operate():
            return replace(stream, value=value_emitted(step, stream, problems))
        case s.KeyBy():
            return replace(stream, key=_key(step, stream.value, problems))
        case s.Merge():
            return _merged(step, inputs, problems)
        case s.Union():
            _check_same(step, inputs, problems)
            return _merged(step, inputs, problems)
        case s.Apply():
            return _apply(step, stream, problems)
        case s.Batch():
            problems += buffer_problems(step, step.pending, stream)
            return replace(stream, value=tuple[tuple[stream.time, stream.value], ...])  # type: ignore[name-defined]
        case s.Accumulate():
            return _accumulate(step, stream, problems)
        case s.Histogram():
            return _histogram(step, stream, problems)
        case s.Join():
            return _join(step, inputs, problems)
        case s.JoinClocks():
            if not step.unbounded:
                problems.append(never_frees(step))
            return replace(_paired(step, inputs, problems), time=Product, is_numbered=False)
        case s.AggregateAll():
            return type_of_aggregation(step, stream, problems)
        case s.AggregateWindows():
            return type_of_windows(step, stream, problems)
        case s.OnComplete():
            check_takes(step, step.receive, 2, stream.value, problems)
            check_is_function(step, step.complete, problems)
            problems += request_problems(step, stream.declared_time, stream.key is not None)
            return replace(stream, value=_output_of(step.receive, step.complete))
        case s.Iterate():
            return _iterate(step, stream, problems)
    return stream


def _iterate(step: s.Iterate, stream: StreamType, problems: list[Problem]) -> StreamType:
    found = list(body_problems(step))
    problems += found
    if any(problem.code in ("not-a-body", "end-in-a-loop") for problem in found):
        return replace(stream, value=Any)
    types, inside = loop_types(step, stream)
    problems += inside
    return leaving(step, stream, types)


def loop_types(step: s.Iterate, stream: StreamType) -> tuple[list[StreamType], list[Problem]]:
    """The types of a loop's body, and the problems found in it."""
    return body_types(step, stream, lambda steps, enters: infer(steps, entering=enters))


def _source(step: s.Source, problems: list[Problem], numbered: Any) -> StreamType:
    if not isinstance(cast(object, step.watermark), BoundedDelay | None):
        problems.append(
            Problem(
                "not-a-watermark",
                f"{step.title} has watermark={step.watermark!r}; a watermark is derived by a rule",
                "for example watermark=cw.bounded_delay(5)",
            )
        )
        step = replace(step, watermark=None)
    if step.late not in get_args(LatePolicy):
        problems.append(
            Problem(
                "unknown-late-policy",
                f"{step.title} has late={step.late!r}; late events are kept, dropped or fatal",
                "use late='keep', late='drop' or late='fail'",
            )
        )
    if step.time is None:
        if step.watermark is not None:
            problems.append(
                Problem(
                    "missing-time",
                    f"{step.title} has a watermark but no time; a watermark is derived from the "
                    "times of the records",
                    "name the field that holds the time, for example time='at'",
                )
            )
        return StreamType(step.type, numbered, is_numbered=True)
    fields = fields_of(step.type)
    time = Any if fields is None else type_of_field(step, step.time, fields, step.type, problems)
    if step.watermark is not None and not has_predecessors(time):
        problems.append(
            Problem(
                "time-has-no-predecessor",
                f"{step.title} takes its time from '{step.time}', which is {typename(time)}; "
                "bounded_delay needs a number, a date or a datetime",
                "give watermarks as events, or choose a field of such a type",
            )
        )
    elif step.watermark is not None:
        check_length(step, "bounded_delay", step.watermark.delay, time, problems, least=0)
    return StreamType(step.type, time)


def _key(step: s.KeyBy, value: Any, problems: list[Problem]) -> tuple[tuple[str, Any], ...]:
    if step.f is not None:
        check_takes(step, step.f, 0, value, problems)
        return (("key", signature_of(step.f).result),)
    if not step.fields or not all(isinstance(name, str) for name in step.fields):
        problems.append(
            Problem(
                "no-key",
                f"{step.title} names {list(step.fields)!r}; a key is one or more fields, or one "
                "function",
                "for example key_by('sensor') or key_by(lambda reading: reading.sensor)",
            )
        )
        return (("key", Any),)
    fields = fields_of(value)
    if fields is None:
        return tuple((name, Any) for name in step.fields)
    return tuple((name, type_of_field(step, name, fields, value, problems)) for name in step.fields)


def _merged(step: s.Step, inputs: list[StreamType], problems: list[Problem]) -> StreamType:
    keys = {stream.key for stream in inputs}
    key = keys.pop() if len(keys) == 1 else None
    time = _common_time(step, inputs, problems)
    is_numbered = any(stream.is_numbered for stream in inputs)
    return StreamType(union_of([stream.value for stream in inputs]), time, key, is_numbered)


def _common_time(step: s.Step, inputs: list[StreamType], problems: list[Problem]) -> Any:
    time = union_of([stream.time for stream in inputs])
    if all(is_total(stream.time) for stream in inputs) and not is_total(time):
        problems.append(
            Problem(
                "times-do-not-compare",
                f"{step.title} reads streams with times of type {typename(time)}; times that meet "
                "are of one kind",
                "choose source fields of one kind as their times",
            )
        )
    return time


def _check_same(step: s.Step, inputs: list[StreamType], problems: list[Problem]) -> None:
    left, right = inputs[0].value, inputs[-1].value
    if not (fits(left, right) and fits(right, left)):
        problems.append(
            Problem(
                "union-of-different-types",
                f"{step.title} joins {typename(left)} with {typename(right)}; a union has one type",
                "use merge, or map one side to the type of the other",
            )
        )


def _apply(step: s.Apply, stream: StreamType, problems: list[Problem]) -> StreamType:
    if not isinstance(cast(object, step.task), Task):
        problems.append(
            Problem(
                "not-a-task",
                f"{step.title} applies {step.task!r}; apply takes a task",
                "decorate the function with @cw.task(initial=...)",
            )
        )
        return replace(stream, value=Any)
    if not fits(stream.value, step.task.event_type):
        problems.append(
            Problem(
                "event-type",
                f"{step.title} takes {typename(step.task.event_type)} (task at {step.task.where}); "
                f"its stream carries {typename(stream.value)}",
                "widen the annotation of the event, or map the stream to that type",
            )
        )
    if isinstance(step.task, VectorisedTask):
        _check_initial(step, step.task, problems)
    if step.expire_after is not None:
        if has_predecessors(stream.time):
            check_length(step, "expire_after", step.expire_after, stream.time, problems, least=0)
        else:
            problems.append(needs_numbers(step, "expire_after", stream.time))
    return replace(stream, value=step.task.output_type)


def _check_initial(step: s.Step, task: VectorisedTask, problems: list[Problem]) -> None:
    try:
        task.layouts.state.of_values([task.initial])
    except CutwaterError as error:
        problem = error.problems[0]
        problems.append(replace(problem, message=f"{step.title}: {problem.message}"))


def _accumulate(step: s.Accumulate, stream: StreamType, problems: list[Problem]) -> StreamType:
    if stream.value is not Any and not fits(stream.value, Pairs):
        problems.append(
            Problem(
                "not-batches",
                f"{step.title} reads {typename(stream.value)}; it accumulates batches",
                "put batch() before it",
            )
        )
    if not step.unbounded:
        problems.append(never_frees(step))
    return stream


def _histogram(step: s.Histogram, stream: StreamType, problems: list[Problem]) -> StreamType:
    if not step.unbounded and (step.paths or not is_total(stream.declared_time)):
        problems.append(never_frees(step))
    problems += buffer_problems(step, step.pending, stream)
    return replace(stream, value=counter_of(stream.value))


def _join(step: s.Join, inputs: list[StreamType], problems: list[Problem]) -> StreamType:
    time = _common_time(step, inputs, problems)
    is_numbered = any(stream.is_numbered for stream in inputs)
    return replace(_paired(step, inputs, problems), time=time, is_numbered=is_numbered)


def _paired(
    step: s.Join | s.JoinClocks, inputs: list[StreamType], problems: list[Problem]
) -> StreamType:
    """The output of a function on one value of each of two streams; times are the left's."""
    left, right = inputs[0], inputs[-1]
    if (left.key is None) != (right.key is None):
        problems.append(
            Problem(
                "join-of-keyed-with-unkeyed",
                f"{step.title} reads one keyed stream and one without a key; a join pairs values "
                "of one key",
                "key both sides by what they share",
            )
        )
    if check_is_function(step, step.f, problems):
        check_takes(step, step.f, 0, left.value, problems)
        check_takes(step, step.f, 1, right.value, problems)
    result = signature_of(step.f).result
    kinds = [member for member in members(result) if member is not type(None)]
    return replace(left, value=union_of(kinds))


def _output_of(*functions: Any) -> Any:
    outputs = []
    for f in functions:
        args = get_args(signature_of(f).result)
        element = element_of(args[1]) if len(args) == 2 else Any
        outputs += [m for m in members(element) if getattr(m, "__name__", "") != "Notify"]
    return union_of(outputs)
