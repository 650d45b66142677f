"""How each step's state is serialised, given the types of the step's stream."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from cutwater.annotations import fields_of, is_known, members, typename, union_of
from cutwater.codec import Codec, Plain
from cutwater.errors import FlowError, Problem
from cutwater.flow import steps as s
from cutwater.flow.fusing import body_of
from cutwater.flow.inferred.operator_steps import operator_snapshot
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.lengths import is_total
from cutwater.operators.accumulate import accumulate_snapshot
from cutwater.operators.aggregate import aggregate_snapshot
from cutwater.operators.aggregates import Aggregate
from cutwater.operators.batch import batch_snapshot
from cutwater.operators.bulk import bulk_values_snapshot
from cutwater.operators.histogram import histogram_snapshot
from cutwater.operators.histogram_total import histogram_total_snapshot
from cutwater.operators.join_by_time import join_snapshot
from cutwater.operators.loop import loop_snapshot
from cutwater.operators.notify import on_complete_snapshot
from cutwater.operators.snapshot import SnapshotCodec
from cutwater.operators.task import task_snapshot
from cutwater.operators.windows import aggregate_windows_snapshot

__all__ = ["key_kept_as", "not_kept", "snapshot_codec", "time_kept_as"]


def snapshot_codec(step: s.Step, inputs: Sequence[StreamType]) -> SnapshotCodec | None:
    """How the state of a step is serialised; None if it keeps none."""
    stream = inputs[0] if inputs else StreamType()
    time = time_kept_as(union_of([stream.time for stream in inputs]))
    match step:
        case s.Apply():
            is_expiring = step.expire_after is not None
            return task_snapshot(time, step.task.state_type, is_expiring=is_expiring)
        case s.Skip():
            return task_snapshot(time, int, is_expiring=False)
        case s.Bulk():
            return bulk_values_snapshot(time, stream.value)
        case s.Operate():
            return operator_snapshot(step, time, stream.value)
        case s.Batch():
            return batch_snapshot(time, stream.value)
        case s.Accumulate():
            return accumulate_snapshot(stream.value)
        case s.Histogram(paths=False) if is_total(stream.declared_time):
            return histogram_total_snapshot(time, stream.value)
        case s.Histogram():
            return histogram_snapshot(time, stream.value)
        case s.Join() | s.JoinClocks():
            return join_snapshot(time, stream.value, inputs[1].value)
        case s.AggregateAll():
            return aggregate_snapshot(key_kept_as(inputs), _kept(step.aggregates, stream))
        case s.AggregateWindows():
            kept = _kept(step.aggregates, stream)
            return aggregate_windows_snapshot(key_kept_as(inputs), time, kept)
        case s.OnComplete():
            return on_complete_snapshot(time, step.state_type)
        case s.Iterate():
            return _loop_snapshot(step, stream)
    return None


def _loop_snapshot(step: s.Iterate, stream: StreamType) -> SnapshotCodec:
    body, segments = body_of(step, stream)
    kept = [
        (
            key_kept_as([segment.output]),
            [snapshot_codec(part.step, part.input_types) for part in segment.parts],
        )
        for segment in segments
    ]
    return loop_snapshot(body, key_kept_as([stream]) if body.is_keyed else None, kept)


def not_kept(step: s.Step, tp: Any, message: object) -> Problem:
    """The problem of a state that a snapshot does not restore unchanged."""
    return Problem(
        "lost-in-a-snapshot",
        f"{step.title} keeps a state, declared as {typename(tp)}, that a snapshot does not "
        f"restore unchanged: {message}",
        "correct what the step keeps, or its annotation",
    )


def time_kept_as(tp: Any) -> Any:
    """The type times are encoded as; numeric times keep their own type, so 3 and 3.0 survive.

    Windows and notifications produce numbers of other types than the source has.
    """
    kinds = members(tp)
    numbers = (int, float, Decimal)
    if not all(isinstance(kind, type) and issubclass(kind, numbers) for kind in kinds):
        return tp
    return int | float | Decimal


def key_kept_as(inputs: Sequence[StreamType]) -> Any:
    """The type keys are encoded as; keys of unknown type are encoded self-describing."""
    tp = union_of([stream.key_type for stream in inputs])
    try:
        Codec(tp)
    except FlowError:
        return Plain
    return tp if is_known(tp) else Plain


def _kept(aggregates: Sequence[tuple[str, Aggregate]], stream: StreamType) -> list[Any]:
    fields = fields_of(stream.value) or {}
    return [
        a.kept_as(stream.value if a.field is None else fields.get(a.field, Any))
        for _, a in aggregates
    ]
