"""How Spark runs each step: a total table; a gap is refused before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from cutwater.errors import CutwaterError, Problem, RunError
from cutwater.flow import steps as s
from cutwater.flow.fusing import Plan
from cutwater.records import Codec, describe

__all__ = ["INLINE", "NEEDS_TIME", "STATE", "SUPPORT", "check_support"]

INLINE = "inline: where its events come from"
STATE = "in a level: one state store group per bucket of keys"
NEEDS_TIME = "it needs watermarks, which this version does not carry on Spark"

SUPPORT: dict[type[s.Step], tuple[bool, str]] = {
    s.Source: (True, "a Python data source of our own"),
    s.Map: (True, INLINE),
    s.FlatMap: (True, INLINE),
    s.Filter: (True, INLINE),
    s.KeyBy: (True, "rows are addressed to the bucket of their key"),
    s.Merge: (True, "rows of all inputs are addressed to one segment"),
    s.Union: (True, "rows of both inputs are addressed to one segment"),
    s.Apply: (True, STATE),
    s.Sink: (True, "one Arrow stream writer for all sinks"),
    s.Batch: (False, NEEDS_TIME),
    s.Accumulate: (False, NEEDS_TIME),
    s.Histogram: (False, NEEDS_TIME),
    s.Join: (False, NEEDS_TIME),
    s.AggregateAll: (False, "its state is not yet encoded on Spark"),
    s.AggregateWindows: (False, NEEDS_TIME),
    s.OnComplete: (False, NEEDS_TIME),
    s.Iterate: (False, "loops cannot be run by this version"),
}


def check_support(plan: Plan) -> None:
    """Raise `RunError` with everything in the flow that Spark cannot run."""
    problems = []
    for step in plan.flow.steps:
        is_supported, reason = SUPPORT[type(step)]
        if isinstance(step, s.Apply) and step.expire_after is not None:
            is_supported, reason = False, f"expire_after: {NEEDS_TIME}"
        if not is_supported:
            problems.append(
                Problem(
                    "not-on-spark",
                    f"{step.title} does not run on Spark yet: {reason}",
                    "cutwater simulate runs it in memory",
                )
            )
    problems += _unencodable(plan)
    if problems:
        raise RunError(problems)


def _unencodable(plan: Plan) -> Sequence[Problem]:
    """What crosses an exchange, or is kept as state, needs a type that can be encoded."""
    problems = []
    for segment in plan.segments:
        if segment.source is not None:
            problem = _reading_problem(segment.source)
            if problem:
                problems.append(problem)
        if not segment.is_stateful:
            continue
        wanted = [(f"the events that come to {segment.steps[0].title}", segment.given.value)]
        wanted += [
            (f"the state of {step.title}", step.task.state_type)
            for step in segment.steps
            if isinstance(step, s.Apply)
        ]
        for what, tp in wanted:
            problem = _encoding_problem(what, tp)
            if problem:
                problems.append(problem)
    return problems


def _reading_problem(source: s.Source) -> Problem | None:
    try:
        msgspec.json.Decoder(source.type)
        if source.type is not Any:
            Codec(source.type)
    except Exception as error:
        return Problem(
            "type-without-decoding",
            f"{source.title} is of type {describe(source.type)}, which cannot be read from JSON: "
            f"{error.problems[0].message if isinstance(error, CutwaterError) else error}",
            "use a dataclass with annotated fields, and a source for each kind of record",
        )
    return None


def _encoding_problem(what: str, tp: object) -> Problem | None:
    if tp is not Any:
        try:
            Codec(tp)
        except Exception as error:
            return Problem(
                "type-without-encoding",
                f"{what} are of type {describe(tp)}, which cannot be encoded: {error}",
                "use a dataclass with annotated fields",
            )
        return None
    return Problem(
        "unknown-type",
        f"{what} are of an unknown type; what crosses an exchange or is kept has a type on Spark",
        "annotate what the function before it returns",
    )
