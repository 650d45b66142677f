"""Binding the sources and sinks of a flow to what they read and write, with every problem said."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path

from cutwater.errors import Problem, RunError
from cutwater.flow.fusing import Plan
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.sink import Sink as Place
from cutwater.spark.connectors.base.source import Feed
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.source_binding import bound_sources

__all__ = ["bind", "bind_sources", "sink_problems"]


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
        raise RunError(problems)
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
        raise RunError(problems)
    return found


def _sources(
    planned: Plan, sources: Mapping[str, str | Path | Feed | Frame]
) -> tuple[dict[str, Feed | Frame], list[Problem]]:
    names = [step.name for step in planned.flow.steps if isinstance(step, Source)]
    problems = _binding_problems("source", list(sources), names)
    found, more = bound_sources(planned, sources)
    return found, problems + more


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
