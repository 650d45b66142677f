"""How Spark runs each kind of step, for every kind; and which types it cannot shuffle or store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from cutwater.annotations import is_known, typename
from cutwater.codec import Codec
from cutwater.errors import CutwaterError, Problem, RefusedError
from cutwater.flow import steps as s
from cutwater.flow.fusing import Plan, Segment
from cutwater.flow.state_snapshots import snapshot_codec, time_kept_as
from cutwater.spark.job.column_requirements import ColumnRequirements

__all__ = ["INLINE", "STATE", "SUPPORT", "WAITS", "check_support"]

INLINE = "inline: where its events come from"
STATE = "in a level: one state store group per bucket of keys"
WAITS = f"{STATE}, with the watermarks of its sources once per epoch"

SUPPORT: dict[type[s.Step], str] = {
    s.Source: "a Python data source of our own, or a streaming DataFrame",
    s.Map: INLINE,
    s.FlatMap: INLINE,
    s.Filter: INLINE,
    s.MapValues: INLINE,
    s.Flatten: INLINE,
    s.KeyBy: "rows are addressed to the bucket of their key",
    s.Merge: "rows of all inputs are addressed to one segment",
    s.Union: "rows of both inputs are addressed to one segment",
    s.Apply: f"{STATE}; with expire_after, also watermarks",
    s.Sink: "one Arrow stream writer for all sinks",
    s.Skip: STATE,
    s.Bulk: WAITS,
    s.Operate: WAITS,
    s.Batch: WAITS,
    s.Accumulate: STATE,
    s.Histogram: WAITS,
    s.Join: f"{WAITS}; rows say by which input they come",
    s.JoinClocks: f"{STATE}; rows say by which input they come",
    s.AggregateAll: f"{STATE}; once an epoch: after the bucket's last event",
    s.AggregateWindows: WAITS,
    s.OnComplete: WAITS,
    s.Enter: "in the operator of its loop",
    s.Iterate: f"{WAITS}; all iterations inside one epoch, or one iteration per epoch, cut at a "
    "log",
    s.FromLog: "a Python data source of our own, which reads a log of a loop",
    s.ToLog: "the writer for all sinks, into a log of a loop",
}


def check_support(plan: Plan) -> None:
    """Raise `RefusedError` with every type that cannot be shuffled or stored as state."""
    problems = list(_unencodable(plan))
    if problems:
        raise RefusedError(problems)


def _unencodable(plan: Plan) -> Iterator[Problem]:
    """Whatever crosses an exchange, or is stored as state, needs a type that can be encoded."""
    requirements = ColumnRequirements(plan)
    for segment in plan.segments:
        if segment.source is not None:
            problem = _reading_problem(segment.source)
            if problem:
                yield problem
        if not segment.is_stateful:
            continue
        for what, tp in _wanted(segment, requirements):
            problem = _encoding_problem(what, tp)
            if problem:
                yield problem
                break  # a state holds what came in: one message is enough


def _wanted(segment: Segment, requirements: ColumnRequirements) -> Iterator[tuple[str, Any]]:
    for tp in dict.fromkeys(edge.value for edge in segment.inputs):
        yield f"the events that come to {segment.steps[0].title}", tp
    if segment.number in requirements.times:
        times = f"the times of what comes to {segment.steps[0].title}"
        yield times, time_kept_as(segment.input_type.time)
    for part in segment.parts:
        snapshot = snapshot_codec(part.step, part.input_types)
        if snapshot is not None:
            yield f"the state of {part.step.title}", snapshot.type


def _reading_problem(source: s.Source) -> Problem | None:
    try:
        msgspec.json.Decoder(source.type)
        if source.type is not Any:
            Codec(source.type)
    except Exception as error:
        return Problem(
            "type-without-decoding",
            f"{source.title} is of type {typename(source.type)}, which cannot be read from JSON: "
            f"{error.problems[0].message if isinstance(error, CutwaterError) else error}",
            "use a dataclass with annotated fields, and a source for each kind of record",
        )
    return None


def _encoding_problem(what: str, tp: Any) -> Problem | None:
    if not is_known(tp):
        return Problem(
            "unknown-type",
            f"{what} are of an unknown type; Spark shuffles and stores only values of known types",
            "annotate what the function before it returns",
        )
    try:
        Codec(tp)
    except Exception as error:
        return Problem(
            "type-without-encoding",
            f"{what} are of type {typename(tp)}, which cannot be encoded: {error}",
            "use a dataclass with annotated fields",
        )
    return None
