"""The form of each step's state: what of it is kept, with the types of the step's own stream."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from cutwater.annotations import describe, fields_of, is_known, members, union_of
from cutwater.codec import Codec, Plain
from cutwater.errors import FlowError, Problem
from cutwater.flow import steps as s
from cutwater.flow.fusing import body_of
from cutwater.flow.inference import StreamType
from cutwater.flow.inferred.operator_steps import operator_form
from cutwater.flow.lengths import is_total
from cutwater.operators.accumulate import accumulate_form
from cutwater.operators.aggregate import aggregate_form
from cutwater.operators.aggregates import Aggregate
from cutwater.operators.batch import batch_form
from cutwater.operators.bulk import bulk_values_form
from cutwater.operators.histogram import histogram_form
from cutwater.operators.histogram_total import histogram_total_form
from cutwater.operators.join_by_time import join_form
from cutwater.operators.loop import loop_form
from cutwater.operators.notify import on_complete_form
from cutwater.operators.snapshot import Form
from cutwater.operators.task import task_form
from cutwater.operators.windows import aggregate_windows_form

__all__ = ["form_of", "key_kept_as", "not_kept", "time_kept_as"]


def form_of(step: s.Step, inputs: Sequence[StreamType]) -> Form | None:
    """How the state of a step is kept; None if it keeps none."""
    given = inputs[0] if inputs else StreamType()
    time = time_kept_as(union_of([stream.time for stream in inputs]))
    match step:
        case s.Apply():
            is_expiring = step.expire_after is not None
            return task_form(time, step.task.state_type, is_expiring=is_expiring)
        case s.Skip():
            return task_form(time, int, is_expiring=False)
        case s.Bulk():
            return bulk_values_form(time, given.value)
        case s.Operate():
            return operator_form(step, time, given.value)
        case s.Batch():
            return batch_form(time, given.value)
        case s.Accumulate():
            return accumulate_form(given.value)
        case s.Histogram(paths=False) if is_total(given.declared_time):
            return histogram_total_form(time, given.value)
        case s.Histogram():
            return histogram_form(time, given.value)
        case s.Join() | s.JoinClocks():
            return join_form(time, given.value, inputs[1].value)
        case s.AggregateAll():
            return aggregate_form(key_kept_as(inputs), _kept(step.aggregates, given))
        case s.AggregateWindows():
            kept = _kept(step.aggregates, given)
            return aggregate_windows_form(key_kept_as(inputs), time, kept)
        case s.OnComplete():
            return on_complete_form(time, step.state_type)
        case s.Iterate():
            return _loop_form(step, given)
    return None


def _loop_form(step: s.Iterate, given: StreamType) -> Form:
    body, segments = body_of(step, given)
    kept = [
        (
            key_kept_as([segment.output]),
            [form_of(part.step, part.given) for part in segment.parts],
        )
        for segment in segments
    ]
    return loop_form(body, key_kept_as([given]) if body.is_keyed else None, kept)


def not_kept(step: s.Step, tp: Any, said: object) -> Problem:
    """The sentence for a state that a snapshot does not give back as it was."""
    return Problem(
        "lost-in-a-snapshot",
        f"{step.title} keeps a state, declared as {describe(tp)}, that a snapshot does not give "
        f"back as it was: {said}",
        "correct what the step keeps, or its annotation",
    )


def time_kept_as(tp: Any) -> Any:
    """The type times are encoded by: among numbers each stays what it is, 3 or 3.0.

    Windows and notifications make numbers of other kinds than a source has.
    """
    kinds = members(tp)
    numbers = (int, float, Decimal)
    if not all(isinstance(kind, type) and issubclass(kind, numbers) for kind in kinds):
        return tp
    return int | float | Decimal


def key_kept_as(inputs: Sequence[StreamType]) -> Any:
    """The type keys are encoded by; what is not annotated says itself what it is."""
    tp = union_of([stream.key_type for stream in inputs])
    try:
        Codec(tp)
    except FlowError:
        return Plain
    return tp if is_known(tp) else Plain


def _kept(aggregates: Sequence[tuple[str, Aggregate]], given: StreamType) -> list[Any]:
    fields = fields_of(given.value) or {}
    return [
        a.kept_as(given.value if a.field is None else fields.get(a.field, Any))
        for _, a in aggregates
    ]
