"""Binding the sources of a flow to what they read, with every problem said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from cutwater.errors import Problem
from cutwater.flow.fusing import Plan
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.source import Feed
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.job.column_requirements import Needs
from cutwater.spark.microbatch.dataframes import frame_problems

__all__ = ["bound_sources", "source_problems"]


def bound_sources(
    planned: Plan, sources: Mapping[str, str | Path | Feed | Frame]
) -> tuple[dict[str, Feed | Frame], list[Problem]]:
    """What sources are bound to, and why they cannot be read; a path alone is of JSON lines."""
    declared = {step.name: step for step in planned.flow.steps if isinstance(step, Source)}
    found: dict[str, Feed | Frame] = {}
    problems: list[Problem] = []
    for name, value in sources.items():
        bound = value if isinstance(value, (Feed, Frame)) else JsonLines(str(value))
        found[name] = bound.absolute() if isinstance(bound, Feed) else bound
        if name in declared:
            problems += source_problems(planned, name, bound)
    return found, problems


def source_problems(planned: Plan, name: str, bound: Feed | Frame) -> Iterator[Problem]:
    """Why a source of the flow cannot be read as it is bound."""
    step = next(s for s in planned.flow.steps if isinstance(s, Source) and s.name == name)
    if isinstance(bound, Frame):
        yield from frame_problems(step, bound)
        yield from _time_problems(planned, step)
    else:
        yield from bound.problems(step.name, step)
        yield from _idle_problems(step, bound.idle_after)


def _time_problems(planned: Plan, step: Source) -> Iterator[Problem]:
    """Rows of a DataFrame cannot be numbered: nobody sees all of them."""
    (segment,) = (seg for seg in planned.segments if seg.source and seg.name == step.name)
    if step.time is None and segment.number in Needs(planned).times:
        yield Problem(
            "no-times",
            f"source '{step.name}' is a DataFrame and names no time, but a step behind it goes by "
            "times",
            f"give it a field for them: source('{step.name}', ..., time='FIELD')",
        )


def _idle_problems(step: Source, limit: float | None) -> Iterator[Problem]:
    """A source that follows others has a watermark that can follow, after some time."""
    if limit is None:
        return
    if not limit > 0:
        yield Problem(
            "idle-at-once",
            f"source '{step.name}' is idle after {limit} seconds; every source is quiet that "
            "long, again and again",
            "leave idle_after out, or make it larger than 0",
        )
    if step.watermark is None:
        yield Problem(
            "idle-without-watermark",
            f"source '{step.name}' is idle after {limit} seconds, but has no watermark that "
            "could follow those of others",
            f"leave idle_after out, or give the source a rule: source('{step.name}', ..., "
            "time='FIELD', watermark=bounded_delay(DELAY))",
        )
