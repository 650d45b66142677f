"""Binding the sources and sinks of a flow to what they read and write, with every problem said."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from cutwater.errors import Problem, RunError
from cutwater.flow.fusing import Plan
from cutwater.flow.steps import Source
from cutwater.spark.bindings import Frame, JsonLines
from cutwater.spark.frames import frame_problems
from cutwater.spark.needs import Needs
from cutwater.spark.sinks import Folder
from cutwater.spark.sinks import Sink as Place

__all__ = ["bind", "bind_sources"]


def bind(
    planned: Plan,
    sources: Mapping[str, str | Path | JsonLines | Frame],
    sinks: Mapping[str, str | Path | Place],
) -> tuple[dict[str, JsonLines | Frame], dict[str, Place]]:
    """What sources and sinks are bound to; raises `RunError` with everything that is wrong."""
    found, problems = _bound_sources(planned, sources)
    records = {sink.name: planned.segments[n].output.value for sink, n in planned.sinks}
    problems += _binding_problems("sink", list(sinks), list(records))
    places = {
        name: value if isinstance(value, Place) else Folder(str(value))
        for name, value in sinks.items()
    }
    problems += _shared_places(places)
    for name, place in places.items():
        if name in records:
            problems += place.problems(name, records[name])
    if problems:
        raise RunError(problems)
    return found, places


def bind_sources(
    planned: Plan, sources: Mapping[str, str | Path | JsonLines | Frame]
) -> dict[str, JsonLines | Frame]:
    """What each source of a plan reads; raises `RunError` with everything that is wrong."""
    found, problems = _bound_sources(planned, sources)
    if problems:
        raise RunError(problems)
    return found


def _bound_sources(
    planned: Plan, sources: Mapping[str, str | Path | JsonLines | Frame]
) -> tuple[dict[str, JsonLines | Frame], list[Problem]]:
    declared = {step.name: step for step in planned.flow.steps if isinstance(step, Source)}
    problems = _binding_problems("source", list(sources), list(declared))
    found: dict[str, JsonLines | Frame] = {}
    for name, value in sources.items():
        bound = value if isinstance(value, (JsonLines, Frame)) else JsonLines(str(value))
        found[name] = _absolute(bound)
        if isinstance(bound, JsonLines):
            problems += _folder_problems(name, bound)
        if name in declared:
            step = declared[name]
            problems += _source_problems(planned, step, bound)
    return found, problems


def _source_problems(planned: Plan, step: Source, bound: JsonLines | Frame) -> Iterator[Problem]:
    if isinstance(bound, Frame):
        yield from frame_problems(step, bound)
        yield from _time_problems(planned, step)
    else:
        yield from _idle_problems(step, bound.idle_after)


def _folder_problems(name: str, source: JsonLines) -> Iterator[Problem]:
    if not Path(source.path).is_dir():
        yield Problem(
            "missing-folder",
            f"source '{name}' reads {source.path}, which is no folder",
            "create it, or correct the path",
        )
    if source.max_bytes_per_epoch < 1:
        yield Problem(
            "no-progress",
            f"source '{name}' may read {source.max_bytes_per_epoch} bytes in an epoch; "
            "an epoch reads at least one",
            "leave max_bytes_per_epoch out, or make it larger",
        )


def _absolute(source: JsonLines | Frame) -> JsonLines | Frame:
    if isinstance(source, Frame):
        return source
    return replace(source, path=str(Path(source.path).absolute()))


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
        if earlier != name:
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
            close = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean '{close[0]}'?" if close else f"it has: {', '.join(names)}"
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
