"""What every stream of a flow carries, derived from annotations; and what does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass, replace
from functools import cache
from typing import Any, cast, get_args

from cutwater.annotations import (
    describe,
    element_of,
    fields_of,
    fits,
    members,
    signature_of,
    union_of,
)
from cutwater.errors import CutwaterError, FlowError, Problem
from cutwater.flow import steps as s
from cutwater.flow.inferred.functions import check_is_function, check_takes
from cutwater.flow.inferred.operator_steps import buffer_problems, value_emitted
from cutwater.flow.lengths import (
    has_predecessors,
    is_length,
    is_total,
    length_in_words,
    time_of_bounds,
)
from cutwater.flow.tasks import Task
from cutwater.flow.timely.loops import body_problems, body_types, leaving
from cutwater.flow.timely.requests import request_problems
from cutwater.flow.vector_tasks import VectorisedTask
from cutwater.flow.watermarks import BoundedDelay, LatePolicy
from cutwater.operators.aggregates import Aggregate
from cutwater.operators.batch import Pairs
from cutwater.operators.snapshot import counter_of
from cutwater.operators.windows import Session, Window
from cutwater.times import Product

__all__ = ["StreamType", "infer", "loop_types"]


@dataclass(frozen=True, slots=True)
class StreamType:
    """What a stream carries; `Any` where that is not known."""

    value: Any = Any
    time: Any = Any
    key: tuple[tuple[str, Any], ...] | None = None
    """Name and type of each part of the key; None: not keyed."""
    is_numbered: bool = False
    """Are there times among its that were made by numbering values?"""

    @property
    def declared_time(self) -> Any:
        """The type of its times as far as annotations say; events may bring any other along."""
        return Any if self.is_numbered else self.time

    @property
    def key_type(self) -> Any:
        """What a key is: one part alone, several as a tuple; None: not keyed."""
        parts = [tp for _, tp in self.key or ()]
        if len(parts) == 1:
            return parts[0]
        return tuple[tuple(parts)] if parts else None  # type: ignore[misc]


def infer(
    steps: Sequence[s.Step], *, numbered: Any = Any, entering: StreamType | None = None
) -> tuple[list[StreamType], list[Problem]]:
    """The type of each step's output, and all problems found on the way.

    `numbered` is the type of the times of a source that names no field for them, `entering` what
    enters, if these are the steps of a loop's body.
    """
    types: list[StreamType] = []
    problems: list[Problem] = []
    unknown: set[int] = set()
    for number, step in enumerate(steps):
        types.append(StreamType())
        # what reads something unknown has no problem of its own
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
    given = inputs[0]
    match step:
        case s.FromLog():
            known: StreamType = step.stream
            return known
        case s.Source():
            return _source(step, problems, numbered)
        case s.Map():
            check_takes(step, step.f, 0, given.value, problems)
            return replace(given, value=signature_of(step.f).result)
        case s.FlatMap():
            check_takes(step, step.f, 0, given.value, problems)
            return replace(given, value=element_of(signature_of(step.f).result))
        case s.Filter():
            check_takes(step, step.f, 0, given.value, problems)
            return given
        case s.MapValues() | s.Flatten() | s.Skip() | s.Bulk() | s.Operate():
            return replace(given, value=value_emitted(step, given, problems))
        case s.KeyBy():
            return replace(given, key=_key(step, given.value, problems))
        case s.Merge():
            return _merged(step, inputs, problems)
        case s.Union():
            _check_same(step, inputs, problems)
            return _merged(step, inputs, problems)
        case s.Apply():
            return _apply(step, given, problems)
        case s.Batch():
            problems += buffer_problems(step, step.pending, given)
            return replace(given, value=tuple[tuple[given.time, given.value], ...])  # type: ignore[name-defined]
        case s.Accumulate():
            return _accumulate(step, given, problems)
        case s.Histogram():
            return _histogram(step, given, problems)
        case s.Join():
            return _join(step, inputs, problems)
        case s.JoinClocks():
            if not step.unbounded:
                problems.append(_never_frees(step))
            return replace(_paired(step, inputs, problems), time=Product, is_numbered=False)
        case s.AggregateAll():
            return _aggregate_all(step, given, problems)
        case s.AggregateWindows():
            return _aggregate_windows(step, given, problems)
        case s.OnComplete():
            check_takes(step, step.receive, 2, given.value, problems)
            check_is_function(step, step.complete, problems)
            problems += request_problems(step, given.declared_time, given.key is not None)
            return replace(given, value=_output_of(step.receive, step.complete))
        case s.Iterate():
            return _iterate(step, given, problems)
    return given


def _iterate(step: s.Iterate, given: StreamType, problems: list[Problem]) -> StreamType:
    found = list(body_problems(step))
    problems += found
    if any(problem.code in ("not-a-body", "end-in-a-loop") for problem in found):
        return replace(given, value=Any)
    types, inside = loop_types(step, given)
    problems += inside
    return leaving(step, given, types)


def loop_types(step: s.Iterate, given: StreamType) -> tuple[list[StreamType], list[Problem]]:
    """The types of a loop's body, and the problems found in it."""
    return body_types(step, given, lambda steps, enters: infer(steps, entering=enters))


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
                f"{step.title} has late={step.late!r}; late events are kept, dropped, or end a run",
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
    time = Any if fields is None else _field(step, step.time, fields, step.type, problems)
    if step.watermark is not None and not has_predecessors(time):
        problems.append(
            Problem(
                "time-has-no-predecessor",
                f"{step.title} takes its time from '{step.time}', which is {describe(time)}; "
                "bounded_delay needs a number, a date or a datetime",
                "give watermarks as events, or choose a field of such a type",
            )
        )
    elif step.watermark is not None:
        _check_length(step, "bounded_delay", step.watermark.delay, time, problems, least=0)
    return StreamType(step.type, time)


def _check_length(
    step: s.Step, what: str, length: Any, time: Any, problems: list[Problem], *, least: int | None
) -> None:
    if is_length(length, time, least=least):
        return
    bound = "not negative" if least == 0 else "larger than zero"
    problems.append(
        Problem(
            "not-a-length",
            f"{step.title} has {what}={length!r}; over times of type {describe(time)} it is "
            f"{length_in_words(time)}, {bound}",
            "give it in the unit of the times",
        )
    )


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
    return tuple((name, _field(step, name, fields, value, problems)) for name in step.fields)


def _field(
    step: s.Step, name: str, fields: dict[str, Any], owner: Any, problems: list[Problem]
) -> Any:
    if name in fields:
        return fields[name]
    has = ", ".join(fields) or "no fields that all of its types share"
    problems.append(
        Problem(
            "unknown-field",
            f"{step.title} names the field '{name}', which {describe(owner)} does not have",
            f"it has: {has}",
        )
    )
    return Any


def _merged(step: s.Step, inputs: list[StreamType], problems: list[Problem]) -> StreamType:
    keys = {given.key for given in inputs}
    key = keys.pop() if len(keys) == 1 else None
    time = _common_time(step, inputs, problems)
    is_numbered = any(given.is_numbered for given in inputs)
    return StreamType(union_of([given.value for given in inputs]), time, key, is_numbered)


def _common_time(step: s.Step, inputs: list[StreamType], problems: list[Problem]) -> Any:
    time = union_of([given.time for given in inputs])
    if all(is_total(given.time) for given in inputs) and not is_total(time):
        problems.append(
            Problem(
                "times-do-not-compare",
                f"{step.title} reads streams with times of type {describe(time)}; times that meet "
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
                f"{step.title} joins {describe(left)} with {describe(right)}; a union has one type",
                "use merge, or map one side to the type of the other",
            )
        )


def _apply(step: s.Apply, given: StreamType, problems: list[Problem]) -> StreamType:
    if not isinstance(cast(object, step.task), Task):
        problems.append(
            Problem(
                "not-a-task",
                f"{step.title} applies {step.task!r}; apply takes a task",
                "decorate the function with @cw.task(initial=...)",
            )
        )
        return replace(given, value=Any)
    if not fits(given.value, step.task.event_type):
        problems.append(
            Problem(
                "event-type",
                f"{step.title} takes {describe(step.task.event_type)} (task at {step.task.where}); "
                f"its stream carries {describe(given.value)}",
                "widen the annotation of the event, or map the stream to that type",
            )
        )
    if isinstance(step.task, VectorisedTask):
        _check_initial(step, step.task, problems)
    if step.expire_after is not None:
        if has_predecessors(given.time):
            _check_length(step, "expire_after", step.expire_after, given.time, problems, least=0)
        else:
            problems.append(_needs_numbers(step, "expire_after", given.time))
    return replace(given, value=step.task.output_type)


def _check_initial(step: s.Step, task: VectorisedTask, problems: list[Problem]) -> None:
    try:
        task.layouts.state.of_values([task.initial])
    except CutwaterError as error:
        problem = error.problems[0]
        problems.append(replace(problem, message=f"{step.title}: {problem.message}"))


def _accumulate(step: s.Accumulate, given: StreamType, problems: list[Problem]) -> StreamType:
    if given.value is not Any and not fits(given.value, Pairs):
        problems.append(
            Problem(
                "not-batches",
                f"{step.title} reads {describe(given.value)}; it accumulates batches",
                "put batch() before it",
            )
        )
    if not step.unbounded:
        problems.append(_never_frees(step))
    return given


def _histogram(step: s.Histogram, given: StreamType, problems: list[Problem]) -> StreamType:
    if not step.unbounded and (step.paths or not is_total(given.declared_time)):
        problems.append(_never_frees(step))
    problems += buffer_problems(step, step.pending, given)
    return replace(given, value=counter_of(given.value))


def _never_frees(step: s.Step) -> Problem:
    return Problem(
        "unbounded-state",
        f"{step.title} keeps every value for ever; a step that never frees its state asks for it",
        "say unbounded=True if the input is finite or small, or use windows",
    )


def _join(step: s.Join, inputs: list[StreamType], problems: list[Problem]) -> StreamType:
    time = _common_time(step, inputs, problems)
    is_numbered = any(given.is_numbered for given in inputs)
    return replace(_paired(step, inputs, problems), time=time, is_numbered=is_numbered)


def _paired(
    step: s.Join | s.JoinClocks, inputs: list[StreamType], problems: list[Problem]
) -> StreamType:
    """What a function makes of one value of each of two streams; times are those of the left."""
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


def _aggregate_all(step: s.AggregateAll, given: StreamType, problems: list[Problem]) -> StreamType:
    if step.emit not in ("event", "epoch"):
        problems.append(
            Problem(
                "unknown-emit",
                f"{step.title} has emit={step.emit!r}; it emits per 'event' or per 'epoch'",
                "say emit='event' or emit='epoch'",
            )
        )
    if not step.unbounded and any(getattr(a, "keeps_all", False) for _, a in step.aggregates):
        problems.append(_never_frees(step))
    return replace(given, value=_record(step, step.aggregates, given, [], problems))


def _aggregate_windows(
    step: s.AggregateWindows, given: StreamType, problems: list[Problem]
) -> StreamType:
    if not isinstance(cast(object, step.window), Window):
        problems.append(
            Problem(
                "not-a-window",
                f"{step.title} has windows of {step.window!r}; a window is tumbling, sliding or "
                "a session",
                "for example window(cw.tumbling(10))",
            )
        )
    elif not has_predecessors(given.time):
        problems.append(_needs_numbers(step, "a window", given.time))
    else:
        _check_window(step, step.window, given.time, problems)
    time = time_of_bounds(step.window, given.time)
    bounds = [("window_start", time), ("window_end", time)]
    value = _record(step, step.aggregates, given, bounds, problems)
    return replace(given, value=value, time=time)


def _check_window(step: s.Step, window: Window, time: Any, problems: list[Problem]) -> None:
    lengths = ["gap"] if isinstance(window, Session) else ["size", "every"]
    if not isinstance(window, Session) and window.size == window.every:
        lengths = ["size"]
    for name in lengths:
        _check_length(step, name, getattr(window, name), time, problems, least=None)
    offset = None if isinstance(window, Session) else window.offset
    if offset is not None and not fits(type(offset), time):
        problems.append(
            Problem(
                "window-offset",
                f"{step.title} has offset={offset!r}; an offset is a time at which a window "
                f"begins, here {describe(time)}",
                "give a time, not a distance",
            )
        )


def _needs_numbers(step: s.Step, what: str, time: Any) -> Problem:
    return Problem(
        "time-is-no-number",
        f"{step.title} runs on times of type {describe(time)}; {what} needs numbers, dates or "
        "datetimes",
        "choose a source field of such a type as its time",
    )


def _record(
    step: s.Step,
    aggregates: Sequence[tuple[str, Aggregate]],
    given: StreamType,
    bounds: list[tuple[str, Any]],
    problems: list[Problem],
) -> Any:
    fields = fields_of(given.value)
    results: list[tuple[str, Any]] = []
    for name, aggregate in aggregates:
        if not isinstance(cast(object, aggregate), Aggregate):
            problems.append(
                Problem(
                    "not-an-aggregate",
                    f"{step.title} has {name}={aggregate!r}; it takes aggregates",
                    f"for example {name}=agg.count()",
                )
            )
            results.append((name, Any))
            continue
        read = given.value
        if aggregate.field is not None:
            known = fields is not None
            read = _field(step, aggregate.field, fields, given.value, problems) if known else Any  # type: ignore[arg-type]
        results.append((name, aggregate.type_of(read)))
    columns = [*(given.key or ()), *bounds, *results]
    twice = [name for name, n in Counter(name for name, _ in columns).items() if n > 1]
    if twice or not results:
        said = f"has the column '{twice[0]}' twice" if twice else "has no aggregates"
        problems.append(
            Problem(
                "aggregate-columns",
                f"{step.title} {said}; key, window bounds and aggregates are columns of one record",
                "give each aggregate a name of its own: total=agg.sum('amount')",
            )
        )
        return Any
    return _record_class("".join(map(str.capitalize, step.name.split("_"))), tuple(columns))


@cache
def _record_class(title: str, columns: tuple[tuple[str, Any], ...]) -> Any:
    """The same class whenever it is asked for, so that the records of two runs compare."""
    return make_dataclass(title, columns, frozen=True)


def _output_of(*functions: Any) -> Any:
    outputs = []
    for f in functions:
        args = get_args(signature_of(f).result)
        element = element_of(args[1]) if len(args) == 2 else Any
        outputs += [m for m in members(element) if getattr(m, "__name__", "") != "Notify"]
    return union_of(outputs)
