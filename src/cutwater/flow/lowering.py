"""Lowering: each step as an operator, composed of the pure operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from operator import attrgetter
from types import CodeType, FrameType
from typing import Any

from cutwater import operators as op
from cutwater.annotations import members, typename
from cutwater.errors import CutwaterError, InputError, Problem, StepError
from cutwater.events import Data, Watermark
from cutwater.flow import steps as s
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.lengths import is_total
from cutwater.operators.aggregate import aggregate
from cutwater.operators.bounded import bounded
from cutwater.operators.bulk import bulk_values
from cutwater.operators.join_by_time import join_by_time
from cutwater.operators.join_clocks import join_clocks
from cutwater.operators.notify import on_complete
from cutwater.operators.task import check_result, task
from cutwater.operators.windows import aggregate_windows
from cutwater.ordering import canonical
from cutwater.round_trip import Loss

__all__ = [
    "call_under",
    "key_bytes_of",
    "key_function",
    "named",
    "not_as_annotated",
    "operator_of",
    "plain_key_function",
    "step_failed",
]


def operator_of(step: s.Step, stream: StreamType, output: StreamType) -> op.Operator:
    """The operator that runs the step on the events of one key."""
    operator = _operator_of(step, stream, output)
    is_guarded = step.is_stateful or isinstance(step, (s.FlatMap, s.Flatten))
    return _guarded(step, operator) if is_guarded else operator


def _operator_of(step: s.Step, stream: StreamType, output: StreamType) -> op.Operator:
    match step:
        case s.Map():
            f = named(step, step.f)
            return op.map_values(lambda _time, value: f(value))
        case s.FlatMap():
            f = named(step, lambda value: bounded(step.f(value), step.title))
            return op.compose(op.map_values(lambda _time, value: f(value)), op.flatten())
        case s.MapValues():
            return op.map_values(named(step, step.f))
        case s.Flatten():
            return op.flatten()
        case s.Skip():
            return task(_skipping, step.n, name=step.name)
        case s.Bulk():
            f = named(step, lambda values: bounded(step.f(values), step.title))
            return bulk_values(f, step.n, step.buffer)
        case s.Operate():
            return _with_events(step)
        case s.Filter():
            f = named(step, step.f)
            kept = op.map_values(lambda _time, value: (value,) if f(value) else ())
            return op.compose(kept, op.flatten())
        case s.Apply():
            f = named(step, step.task.f)
            return task(f, step.task.initial, name=step.name, expire_after=step.expire_after)
        case s.Batch():
            return op.batch(step.pending)
        case s.Accumulate():
            return op.accumulate(step.batches)
        case s.Histogram(paths=True):
            return op.histogram_paths(step.pending)
        case s.Histogram() if is_total(stream.declared_time):
            return op.histogram_total(pending=step.pending)
        case s.Histogram():
            return op.histogram(step.pending)
        case s.Join():
            return join_by_time(named(step, step.f))
        case s.JoinClocks():
            return join_clocks(named(step, step.f))
        case s.AggregateAll():
            make = _record_maker(stream, output.value)
            return aggregate([a for _, a in step.aggregates], make, emit=step.emit)
        case s.AggregateWindows():
            make = _record_maker(stream, output.value)
            aggregates = [a for _, a in step.aggregates]
            number = _number(stream.declared_time)
            return aggregate_windows(step.window, aggregates, make, number=number)
        case s.OnComplete():
            receive, complete = named(step, step.receive), named(step, step.complete)
            return on_complete(
                receive, complete, step.initial, requests=step.requests, name=step.name
            )
    return op.identity()


def _skipping(left: int, value: Any) -> tuple[int, list[Any]]:
    return (left - 1, []) if left else (0, [value])


def _with_events(step: s.Operate) -> op.Operator:
    """The user's operator; raises `InputError` where it emits anything but events."""
    own = step.op

    def checked(state: Any, event: Any) -> tuple[Any, list[Any]]:
        return _state_and_events(own.step(state, event))

    def _state_and_events(result: Any) -> tuple[Any, list[Any]]:
        state, outputs = check_result(result, step.name)
        return state, _events(step, outputs)

    barrier = own.barrier
    return replace(
        own,
        step=checked,
        finish=lambda state: _events(step, own.finish(state)),
        barrier=barrier and (lambda state: _state_and_events(barrier(state))),
    )


def _events(step: s.Operate, outputs: Iterable[Any]) -> list[Any]:
    events = bounded(outputs, step.title)
    for event in events:
        if not isinstance(event, (Data, Watermark)):
            raise InputError(
                Problem(
                    "not-an-event",
                    f"{step.title} emitted {event!r}; an operator emits events",
                    "emit Data(time, value)",
                )
            )
    return events


def key_function(step: s.KeyBy) -> Callable[[Any], Any]:
    """Extracts the key of a value: one field, several as a tuple, or the function's result."""
    return named(step, plain_key_function(step))


def plain_key_function(step: s.KeyBy) -> Callable[[Any], Any]:
    """The same, but errors pass through without the name of the step."""
    return step.f or attrgetter(*step.fields)


def key_bytes_of(step: s.Step, key: Any) -> bytes:
    """The canonical bytes of a key; raises an `InputError` that names the step that made it."""
    try:
        return canonical(key)
    except InputError as error:
        problem = error.problems[0]
        message = f"the key that {step.title} made: {problem.message}"
        raise InputError(replace(problem, message=message)) from None


def _number(time: Any) -> type[float] | type[Decimal] | None:
    kinds = members(time)
    return float if float in kinds else Decimal if Decimal in kinds else None


def _record_maker(stream: StreamType, record: Any) -> Callable[..., Any]:
    parts = len(stream.key or ())
    if parts == 1:
        return lambda key, *rest: record(key, *rest)
    if parts == 0:
        return lambda _key, *rest: record(*rest)
    return lambda key, *rest: record(*key, *rest)


def named(step: s.Step, f: Callable[..., Any], *, shown: int = 0) -> Callable[..., Any]:
    """The function; where it fails, raises a `StepError` that names the step and the event."""

    def call(*args: Any) -> Any:
        try:
            return f(*args)
        except CutwaterError:
            raise
        except (Exception, SystemExit) as error:
            raise step_failed(step, args[shown:], error) from error

    return call


def call_under(frame: FrameType | None) -> FrameType | None:
    """The nearest frame on a stack that calls a step's function; None if there is none."""
    while frame is not None and frame.f_code is not _CALL:
        frame = frame.f_back
    return frame


_CALL = next(const for const in named.__code__.co_consts if isinstance(const, CodeType))


def _guarded(step: s.Step, operator: op.Operator) -> op.Operator:
    """The operator, with the same error where a value does not suit a built-in step."""

    def finish(state: Any) -> list[Any]:
        return list(operator.finish(state))

    return replace(
        operator,
        step=named(step, operator.step, shown=1),
        finish=named(step, finish, shown=1),
        barrier=operator.barrier and named(step, operator.barrier, shown=1),
    )


def not_as_annotated(step: s.Step, tp: Any, found: Loss) -> Problem:
    """The problem of an output that its step's annotation does not allow."""
    return Problem(
        "not-as-annotated",
        f"{step.title} is annotated to emit {typename(tp)} and emits something else: "
        f"{found.found}; {found.reason}",
        "correct what the function returns, or its annotation",
    )


def step_failed(step: s.Step, args: Sequence[Any], error: BaseException) -> StepError:
    """The error for a step's function that raised."""
    return StepError(
        Problem(
            "step-failed",
            f"{step.title} raised {type(error).__name__}: {error}"
            + ("; it was given " if args else "; the input had ended")
            + ", ".join(repr(arg)[:200] for arg in args),
            "correct the function, or filter out such values before this step",
        )
    )
