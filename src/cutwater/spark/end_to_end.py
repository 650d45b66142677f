"""The end-to-end guarantee of each sink, given the connectors that a run is bound to.

`cutwater.flow.guarantees.end_to_end` derives it from what sources and sinks declare.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from cutwater.errors import Problem, RefusedError
from cutwater.flow import Flow
from cutwater.flow.guarantees.end_to_end import GUARANTEE_KINDS, SinkGuarantee, SinkPart, SourcePart
from cutwater.flow.guarantees.settings import Setting, guarantees_of_sinks, setting_of
from cutwater.spark.binding import bind
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.job.spec import MICROBATCH, REALTIME, spark_plan
from cutwater.spark.realtime.requirements import unsupported

__all__ = [
    "GUARANTEE_KINDS",
    "SinkGuarantee",
    "bound_setting",
    "guarantees",
    "sink_guarantees",
    "too_low",
]


def guarantees(
    flow: Flow,
    sources: Mapping[str, str | Path | SourceConnector | Frame],
    sinks: Mapping[str, str | Path | SinkConnector],
) -> dict[str, SinkGuarantee]:
    """What `run` would guarantee for each sink, without running anything."""
    bound_sources, bound_sinks = bind(spark_plan(flow), sources, sinks)
    return sink_guarantees(flow, bound_sources, bound_sinks)


def sink_guarantees(
    flow: Flow, sources: Mapping[str, SourceConnector | Frame], sinks: Mapping[str, SinkConnector]
) -> dict[str, SinkGuarantee]:
    """The guarantee of each sink of a flow whose sources and sinks are bound."""
    parts = {name: _source_part(name, source) for name, source in sources.items()}
    own = [
        part
        for name, sink in sinks.items()
        for part in _sink_parts(name, sink)
        if part.release == sink.release
    ]
    return {guarantee.sink: guarantee for guarantee in guarantees_of_sinks(flow, parts, own)}


def bound_setting(
    flow: Flow,
    sources: Mapping[str, str | Path | SourceConnector | Frame],
    sinks: Mapping[str, str | Path | SinkConnector],
    title: str,
    mode: str = MICROBATCH,
    *,
    refuted: Collection[str] = (),
    impure: Collection[str] = (),
) -> Setting:
    """The guarantees of a flow with these connectors, for every way its sinks release rows.

    Refused if the engine of this mode cannot run it; in real time rows are released early.
    """
    planned = spark_plan(flow)
    bound_sources, bound_sinks = bind(planned, sources, sinks)
    is_real_time = mode == REALTIME
    problems = list(unsupported(planned, bound_sources, bound_sinks)) if is_real_time else []
    if problems:
        raise RefusedError(problems)
    parts = [part for name, sink in bound_sinks.items() for part in _sink_parts(name, sink)]
    return setting_of(
        flow,
        "configured",
        title,
        {name: _source_part(name, source) for name, source in bound_sources.items()},
        [part for part in parts if part.release == "early" or not is_real_time],
        refuted=refuted,
        impure=impure,
    )


def _source_part(name: str, source: SourceConnector | Frame) -> SourcePart:
    """What a source declares about its replay."""
    replay = source.replay()
    return SourcePart(
        name,
        replay.is_replayable,
        replay.is_reordered,
        replay.because,
        replay.provided,
        replay.remedy,
    )


def _sink_parts(name: str, sink: SinkConnector) -> list[SinkPart]:
    """What a sink declares about its guarantee, once per way in which it can release rows."""
    own = sink.guarantee()
    return [
        SinkPart(name, own.kind, own.because, own.provided, release) for release in sink.releases
    ]


def too_low(found: Mapping[str, SinkGuarantee], required: str) -> list[Problem]:
    """Why a run that requires a guarantee must not start; empty if every sink reaches it."""
    if required not in GUARANTEE_KINDS:
        message = " or ".join(map(repr, reversed(GUARANTEE_KINDS)))
        return [
            Problem(
                "unknown-choice", f"require is {required!r}; it must be {message}", f"use {message}"
            )
        ]
    return [
        Problem(
            "guarantee-too-low",
            f"{required} is required, but sink '{name}' has {guarantee.kind}: "
            f"{', '.join(guarantee.because)}",
            "bind its sources and the sink to what can guarantee it, or do not require it",
        )
        for name, guarantee in found.items()
        if GUARANTEE_KINDS.index(guarantee.kind) < GUARANTEE_KINDS.index(required)
    ]
