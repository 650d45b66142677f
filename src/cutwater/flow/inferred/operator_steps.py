"""P4's operators as steps: the types they emit and keep, and problems in how they are used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from cutwater.annotations import element_of, fits, signature_of, typename, union_of
from cutwater.errors import Problem
from cutwater.flow import steps as s
from cutwater.flow.inferred.functions import check_is_function, check_takes
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.lengths import is_total
from cutwater.flow.tasks import are_outputs
from cutwater.operators.operator import Operator
from cutwater.operators.parts import emitted
from cutwater.operators.snapshot import SnapshotCodec

__all__ = ["buffer_problems", "operator_snapshot", "value_emitted"]


def value_emitted(
    step: s.MapValues | s.Flatten | s.Skip | s.Bulk | s.Operate,
    stream: StreamType,
    problems: list[Problem],
) -> Any:
    """The type of the values that the step emits."""
    match step:
        case s.MapValues():
            check_takes(step, step.f, 1, stream.value, problems)
            return signature_of(step.f).result
        case s.Flatten():
            return _flattened(step, stream.value, problems)
        case s.Skip():
            problems += _of_count(step, step.n, least=0)
            return stream.value
        case s.Bulk():
            check_is_function(step, step.f, problems)
            problems += _of_count(step, step.n, least=1)
            problems += buffer_problems(step, step.buffer, stream)
            return element_of(signature_of(step.f).result)
    return _operated(step, stream, problems)


def _flattened(step: s.Flatten, value: Any, problems: list[Problem]) -> Any:
    if not are_outputs(value):
        problems.append(
            Problem(
                "not-several-values",
                f"{step.title} reads {typename(value)}; flatten emits each element of a list",
                "let the step before it return lists",
            )
        )
    return element_of(value)


def _of_count(step: s.Skip | s.Bulk, n: Any, *, least: int) -> Iterator[Problem]:
    if not isinstance(n, int) or n < least:
        yield Problem(
            "not-a-count",
            f"{step.title} has n={n!r}; it is an integer, at least {least}",
            f"for example n={least + 1}",
        )


def _operated(step: s.Operate, stream: StreamType, problems: list[Problem]) -> Any:
    op = cast(object, step.op)
    if not isinstance(op, Operator):
        problems.append(
            Problem(
                "not-an-operator",
                f"{step.title} was given {op!r}; it takes an Operator",
                "make one: Operator(initial, step), where step(state, event) returns a state and "
                "a list of events",
            )
        )
        return Any
    if op.is_awake and stream.key is not None:
        problems.append(_of_keys(step, "an operator with is_awake=True"))
    return emitted(op, stream.time, stream.value) if step.emits is None else step.emits


def buffer_problems(step: s.Step, buffer: Any, stream: StreamType) -> list[Problem]:
    """Problems with the values that a step holds before its first event."""
    problems = [
        Problem(
            "buffer-of-another-kind",
            f"{step.title} begins with {pair!r}; its stream has times of type "
            f"{typename(stream.declared_time)} and values of type {typename(stream.value)}",
            "give pairs of a time and a value of these types",
        )
        for pair in buffer
        if not _is_of_the_stream(pair, stream)
    ]
    if buffer and stream.key is not None:
        problems.append(_of_keys(step, f"{list(buffer)!r} from the start"))
    return problems


def _is_of_the_stream(pair: Any, stream: StreamType) -> bool:
    if not isinstance(pair, tuple) or len(pair) != 2:
        return False
    time, value = map(type, pair)
    has_time = fits(time, stream.declared_time) or is_total(union_of([time, stream.declared_time]))
    return has_time and fits(value, stream.value)


def _of_keys(step: s.Step, what: str) -> Problem:
    return Problem(
        "buffer-of-keys",
        f"{step.title} has {what}, on a keyed stream; a key is not known before its first event, "
        "so nothing can be held for it from the start",
        "put the step before key_by, or let the values come by a source",
    )


def operator_snapshot(step: s.Operate, time: Any, value: Any) -> SnapshotCodec:
    """How the state of a user's operator is serialised: as declared, as the operator says, by
    annotation, or else by the type of the initial state.
    """
    if step.state is not None:
        return SnapshotCodec(step.state)
    if step.op.snapshot is not None:
        return step.op.snapshot(time, value)
    annotated = signature_of(step.op.step).parameters[:1]
    is_annotated = annotated and annotated[0] is not Any
    return SnapshotCodec(annotated[0] if is_annotated else type(step.op.initial))
