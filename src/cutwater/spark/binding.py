"""Binding the sources and sinks of a flow to what they read and write, with every problem said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from cutwater.errors import Problem, RefusedError, did_you_mean
from cutwater.flow.fusing import Plan
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.sink import Sink as Place
from cutwater.spark.connectors.base.source import Feed
from cutwater.spark.connectors.dataframe.checks import frame_problems
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.job.column_requirements import Needs

__all__ = ["bind", "bind_sources", "bound_sources", "sink_problems", "source_problems"]


def bind(
    planned: Plan,
    sources: Mapping[str, str | Path | Feed | Frame],
    sinks: Mapping[str, str | Path | Place],
) -> tuple[dict[str, Feed | Frame], dict[str, Place]]:
    """What sources and sinks are bound to; raises `RunError` with everything that is wrong."""
    found, problems = _sources(planned, sources)
    names = [sink.name for sink, _ in planned.sinks]
    problems += _binding_problems("sink", list(sinks), names)
    places = {
        name: value if isinstance(value, Place) else Folder(str(value))
        for name, value in sinks.items()
    }
    problems += _shared_places(places)
    for name, place in places.items():
        if name in names:
            problems += sink_problems(planned, name, place)
    if problems:
        raise RefusedError(problems)
    return found, places


def sink_problems(planned: Plan, name: str, place: Place) -> Iterator[Problem]:
    """Why a sink of the flow cannot be written to as it is bound."""
    number = next(number for sink, number in planned.sinks if sink.name == name)
    return place.problems(name, planned.segments[number].output.value)


def bind_sources(
    planned: Plan, sources: Mapping[str, str | Path | Feed | Frame]
) -> dict[str, Feed | Frame]:
    """What each source of a plan reads; raises `RunError` with everything that is wrong."""
    found, problems = _sources(planned, sources)
    if problems:
        raise RefusedError(problems)
    return found


def _sources(
    planned: Plan, sources: Mapping[str, str | Path | Feed | Frame]
) -> tuple[dict[str, Feed | Frame], list[Problem]]:
    names = [step.name for step in planned.flow.steps if isinstance(step, Source)]
    problems = _binding_problems("source", list(sources), names)
    found, more = bound_sources(planned, sources)
    return found, problems + more


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


def _shared_places(sinks: Mapping[str, Place]) -> list[Problem]:
    """A sink keeps a ledger in its place, so the rows of a second one would be dropped."""
    problems = []
    first: dict[str, str] = {}
    for name, sink in sinks.items():
        earlier = first.setdefault(sink.place, name)
        if sink.place and earlier != name:
            problems.append(
                Problem(
                    "shared-place",
                    f"sinks '{earlier}' and '{name}' both go to {sink.place}; each sink has a "
                    "place of its own",
                    f"bind '{name}' to another one",
                )
            )
    return problems


def _binding_problems(kind: str, bound: list[str], names: list[str]) -> list[Problem]:
    problems = []
    for name in bound:
        if name not in names:
            hint = did_you_mean(name, names) or f"it has: {', '.join(names)}"
            problems.append(Problem(f"unknown-{kind}", f"'{name}' is no {kind} of this flow", hint))
    for name in names:
        if name not in bound:
            problems.append(
                Problem(
                    f"unbound-{kind}",
                    f"{kind} '{name}' is not bound to a folder; every {kind} needs one",
                    f"pass --{kind} {name}=FOLDER",
                )
            )
    return problems
