"""The guarantee from end to end of each sink, for the sources and sinks that a run is bound to.

How it is derived from what they say is `cutwater.flow.guarantees.end_to_end`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from cutwater.errors import Problem
from cutwater.flow import Flow
from cutwater.flow.checked import noted_check
from cutwater.flow.guarantees.end_to_end import LEVELS, Promise, SinkPart, SourcePart, promise_of
from cutwater.flow.guarantees.order_free import orders_of
from cutwater.spark.binding import bind
from cutwater.spark.connectors.base.sink import Sink
from cutwater.spark.connectors.base.source import Feed
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.job.spec import spark_plan

__all__ = ["LEVELS", "Promise", "every_promise", "guarantees", "promises", "source_part", "too_low"]


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
    return {
        promise.sink: promise
        for promise in every_promise(flow, sources, sinks)
        if promise.release == sinks[promise.sink].release
    }


def every_promise(
    flow: Flow,
    sources: Mapping[str, Feed | Frame],
    sinks: Mapping[str, Sink],
    *,
    refuted: Collection[str] = (),
    impure: Collection[str] = (),
) -> list[Promise]:
    """The promise for each sink and each way in which it can release rows.

    `refuted` are steps that claim to be commutative and are not, `impure` those with a function
    that is not pure.
    """
    checked, orders = noted_check(flow), orders_of(flow, refuted)
    parts = {name: source_part(name, source) for name, source in sources.items()}
    return [
        promise_of(
            flow,
            parts,
            _sink_part(name, sinks[name], release),
            order,
            checked=checked,
            impure=tuple(impure),
        )
        for name, order in orders.items()
        for release in sinks[name].releases
    ]


def source_part(name: str, source: Feed | Frame) -> SourcePart:
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


def _sink_part(name: str, sink: Sink, release: str) -> SinkPart:
    own = sink.guarantee()
    return SinkPart(name, own.level, own.because, own.provided, release)


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
