"""Binds the sources and sinks of a flow to connectors, and reports every problem at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from cutwater.errors import Problem, RefusedError, did_you_mean
from cutwater.flow.fusing import Plan
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.spark.connectors.dataframe.checks import frame_problems
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.job.column_requirements import ColumnRequirements

__all__ = ["bind", "bind_sources", "bound_sources", "sink_problems", "source_problems"]


def bind(
    planned: Plan,
    sources: Mapping[str, str | Path | SourceConnector | Frame],
    sinks: Mapping[str, str | Path | SinkConnector],
) -> tuple[dict[str, SourceConnector | Frame], dict[str, SinkConnector]]:
    """Return the connectors of all sources and sinks; raises `RunError` listing every problem."""
    found, problems = _sources(planned, sources)
    names = [sink.name for sink, _ in planned.sinks]
    problems += _binding_problems("sink", list(sinks), names)
    locations = {
        name: value if isinstance(value, SinkConnector) else Folder(str(value))
        for name, value in sinks.items()
    }
    own = {
        name: list(sink_problems(planned, name, location))
        for name, location in locations.items()
        if name in names
    }
    sound = {name: locations[name] for name, found_problems in own.items() if not found_problems}
    problems += _shared_locations(sound)
    problems += [problem for found_problems in own.values() for problem in found_problems]
    if problems:
        raise RefusedError(problems)
    return found, locations


def sink_problems(planned: Plan, name: str, location: SinkConnector) -> Iterator[Problem]:
    """Why a sink of the flow cannot write to its connector."""
    number = next(number for sink, number in planned.sinks if sink.name == name)
    return location.problems(name, planned.segments[number].output.value)


def bind_sources(
    planned: Plan, sources: Mapping[str, str | Path | SourceConnector | Frame]
) -> dict[str, SourceConnector | Frame]:
    """Return the connector of each source of a plan; raises `RunError` listing every problem."""
    found, problems = _sources(planned, sources)
    if problems:
        raise RefusedError(problems)
    return found


def _sources(
    planned: Plan, sources: Mapping[str, str | Path | SourceConnector | Frame]
) -> tuple[dict[str, SourceConnector | Frame], list[Problem]]:
    names = [step.name for step in planned.flow.steps if isinstance(step, Source)]
    problems = _binding_problems("source", list(sources), names)
    found, more = bound_sources(planned, sources)
    return found, problems + more


def bound_sources(
    planned: Plan, sources: Mapping[str, str | Path | SourceConnector | Frame]
) -> tuple[dict[str, SourceConnector | Frame], list[Problem]]:
    """Return connectors and problems of the sources; a bare path is read as JSON lines."""
    declared = {step.name: step for step in planned.flow.steps if isinstance(step, Source)}
    found: dict[str, SourceConnector | Frame] = {}
    problems: list[Problem] = []
    for name, value in sources.items():
        bound = value if isinstance(value, (SourceConnector, Frame)) else JsonLines(str(value))
        found[name] = bound.absolute() if isinstance(bound, SourceConnector) else bound
        if name in declared:
            problems += source_problems(planned, name, bound)
    return found, problems


def source_problems(planned: Plan, name: str, bound: SourceConnector | Frame) -> Iterator[Problem]:
    """Why a source of the flow cannot read from its connector."""
    step = next(s for s in planned.flow.steps if isinstance(s, Source) and s.name == name)
    if isinstance(bound, Frame):
        yield from frame_problems(step, bound)
        yield from _time_problems(planned, step)
    else:
        yield from bound.problems(step.name, step)
        yield from _idle_problems(step, bound.idle_after)


def _time_problems(planned: Plan, step: Source) -> Iterator[Problem]:
    """A DataFrame needs a time field: no process sees all of its rows and could number them."""
    (segment,) = (seg for seg in planned.segments if seg.source and seg.name == step.name)
    if step.time is None and segment.number in ColumnRequirements(planned).times:
        yield Problem(
            "no-times",
            f"source '{step.name}' is a DataFrame and has no time field, but a later "
            "step depends on event times",
            f"give it a field for them: source('{step.name}', ..., time='FIELD')",
        )


def _idle_problems(step: Source, limit: float | None) -> Iterator[Problem]:
    """An idle source needs a watermark that can follow the others, and a positive timeout."""
    if limit is None:
        return
    if not limit > 0:
        yield Problem(
            "idle-at-once",
            f"source '{step.name}' has idle_after={limit}; it must be larger than 0, since every "
            "source pauses between records",
            "leave idle_after out, or make it larger than 0",
        )
    if step.watermark is None:
        yield Problem(
            "idle-without-watermark",
            f"source '{step.name}' has idle_after={limit}, but no watermark that could follow "
            "those of the other sources",
            f"leave idle_after out, or give it a watermark: source('{step.name}', ..., "
            "time='FIELD', watermark=bounded_delay(DELAY))",
        )


def _shared_locations(sinks: Mapping[str, SinkConnector]) -> list[Problem]:
    """Each location has one ledger, so the rows of a second sink there would be dropped."""
    problems = []
    first: dict[str, str] = {}
    for name, sink in sinks.items():
        earlier = first.setdefault(sink.location, name)
        if sink.location and earlier != name:
            problems.append(
                Problem(
                    "shared-place",
                    f"sinks '{earlier}' and '{name}' both write to {sink.location}; each sink "
                    "needs its own location",
                    f"bind '{name}' to another one",
                )
            )
    return problems


def _binding_problems(kind: str, bound: list[str], names: list[str]) -> list[Problem]:
    problems = []
    for name in bound:
        if name not in names:
            hint = did_you_mean(name, names) or f"it has: {', '.join(names)}"
            problems.append(
                Problem(f"unknown-{kind}", f"'{name}' is not a {kind} of this flow", hint)
            )
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
