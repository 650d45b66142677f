"""The guarantee from end to end of each sink, for the sources and sinks that a run is bound to.

How it is derived from what they say is `cutwater.flow.guarantees.end_to_end`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from cutwater.errors import Problem
from cutwater.flow import Flow
from cutwater.flow.guarantees.end_to_end import LEVELS, Promise, SinkPart, SourcePart
from cutwater.flow.guarantees.settings import Setting, promises_of, setting_of
from cutwater.spark.binding import bind
from cutwater.spark.connectors.base.sink import Sink
from cutwater.spark.connectors.base.source import Feed
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.job.spec import spark_plan

__all__ = ["LEVELS", "Promise", "bound_setting", "guarantees", "promises", "too_low"]


def guarantees(
    flow: Flow,
    sources: Mapping[str, str | Path | Feed | Frame],
    sinks: Mapping[str, str | Path | Sink],
) -> dict[str, Promise]:
    """What `run` would promise for each sink, without running anything."""
    bound_sources, bound_sinks = bind(spark_plan(flow), sources, sinks)
    return promises(flow, bound_sources, bound_sinks)


def promises(
    flow: Flow, sources: Mapping[str, Feed | Frame], sinks: Mapping[str, Sink]
) -> dict[str, Promise]:
    """The promise for each sink of a flow whose sources and sinks are bound."""
    parts = {name: _source_part(name, source) for name, source in sources.items()}
    own = [
        part
        for name, sink in sinks.items()
        for part in _sink_parts(name, sink)
        if part.release == sink.release
    ]
    return {promise.sink: promise for promise in promises_of(flow, parts, own)}


def bound_setting(
    flow: Flow,
    sources: Mapping[str, str | Path | Feed | Frame],
    sinks: Mapping[str, str | Path | Sink],
    title: str,
    *,
    refuted: Collection[str] = (),
    impure: Collection[str] = (),
) -> Setting:
    """What holds of a flow with these sources and sinks, and with every release of the sinks."""
    bound_sources, bound_sinks = bind(spark_plan(flow), sources, sinks)
    return setting_of(
        flow,
        "configured",
        title,
        {name: _source_part(name, source) for name, source in bound_sources.items()},
        [part for name, sink in bound_sinks.items() for part in _sink_parts(name, sink)],
        refuted=refuted,
        impure=impure,
    )


def _source_part(name: str, source: Feed | Frame) -> SourcePart:
    """What a source says of itself."""
    replay = source.replay()
    return SourcePart(
        name,
        replay.is_replayable,
        replay.is_reordered,
        replay.because,
        replay.provided,
        replay.remedy,
    )


def _sink_parts(name: str, sink: Sink) -> list[SinkPart]:
    """What a sink says of itself, for each way in which it can release rows."""
    own = sink.guarantee()
    return [
        SinkPart(name, own.level, own.because, own.provided, release) for release in sink.releases
    ]


def too_low(found: Mapping[str, Promise], required: str) -> list[Problem]:
    """Why a run that requires a level must not start."""
    if required not in LEVELS:
        said = " or ".join(map(repr, reversed(LEVELS)))
        return [Problem("unknown-choice", f"require is {required!r}; it is {said}", f"use {said}")]
    return [
        Problem(
            "guarantee-too-low",
            f"{required} is required, but sink '{name}' has {promise.level}: "
            f"{', '.join(promise.because)}",
            "bind its sources and the sink to what can promise it, or do not require it",
        )
        for name, promise in found.items()
        if LEVELS.index(promise.level) < LEVELS.index(required)
    ]
