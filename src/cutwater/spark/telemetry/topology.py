"""Which steps read which, and the clocks of sources, as a checkpoint keeps them.

Written at each start, so that ``cutwater frontier`` needs neither the flow nor Spark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from cutwater.errors import Problem, RefusedError
from cutwater.flow import steps as s
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.watermarks import bounded_delay
from cutwater.flow.where import Where
from cutwater.operators.windows import Sliding
from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.spark.connectors.base.watermarks import (
    Numbering,
    PartitionWatermarkTracker,
    SourceTracker,
    WatermarkTracker,
)
from cutwater.spark.job.column_requirements import needs_watermarks
from cutwater.spark.job.spec import Job
from cutwater.spark.storage.durable import damaged, read_json, write_json

__all__ = [
    "FlowShape",
    "SourceTimes",
    "StepTimes",
    "read_topology",
    "topology_of",
    "write_topology",
]

_FILE = "topology.json"
_WHAT = "the steps of the flow"
_KINDS = {tp.__name__: tp for tp in (int, float, Decimal, dt.datetime, dt.date, dt.timedelta, str)}
"""The types of times that can be named in a file."""


@dataclass(frozen=True)
class SourceTimes:
    """What is known of the times of a source without its flow."""

    kind: str = ""
    """The type of its times; empty: no step uses them, or they are of a user's type."""
    delay: Any = None
    """The delay of its watermark, as JSON; None: it has no watermark."""
    is_numbered: bool = False
    """Are its records numbered, since they have no times?"""
    is_ours: bool = True
    """Do our readers read it? Otherwise Spark does, and its watermark is kept in a state."""
    has_partitions: bool = False
    """Has each partition a watermark of its own?"""
    idle_after: float | None = None

    @property
    def has_watermark(self) -> bool:
        """Does it ever complete a time before the input ends?"""
        return self.is_numbered or self.delay is not None

    @property
    def time_type(self) -> Any:
        """The type of its times; `Any` if that is not known."""
        return _KINDS.get(self.kind, Any)

    def delay_as_time(self) -> Any:
        """The delay as it is subtracted from times."""
        return _amount(self.delay, self.time_type)

    def watermark_tracker(self) -> SourceTracker | None:
        """How its log is read; None if that does not say what is complete."""
        if not self.is_ours or not self.kind:
            return None
        if self.is_numbered:
            return Numbering()
        if self.delay is None:
            return None
        rule = bounded_delay(self.delay_as_time())
        step = s.Source(name="", where=Where("", 0), type=Any, time="time", watermark=rule)
        stream = StreamType(time=self.time_type)
        if self.has_partitions:
            return PartitionWatermarkTracker(step, stream, self.idle_after)
        return WatermarkTracker(step, stream)


@dataclass(frozen=True)
class StepTimes:
    """A step, and what it waits for."""

    name: str
    verb: str
    inputs: tuple[int, ...] = ()
    """Numbers of the steps it reads."""
    waits: bool = False
    """Does it act when times are complete?"""
    window: tuple[Any, Any, Any] | None = None
    """Size, period and offset of its windows, as JSON has them."""
    body: tuple[StepTimes, ...] = ()
    """Of a loop, the steps that it repeats; their inputs are numbers within the body."""

    def with_body(self, depth: int = 0) -> Iterator[tuple[int, StepTimes]]:
        """The step and those in its body, each with the number of loops around it."""
        yield depth, self
        for step in self.body:
            if step.verb != s.Enter.verb:
                yield from step.with_body(depth + 1)

    def windows(self, tp: Any) -> Sliding | None:
        """Its windows over times of a type; None if it has none, or if they depend on events."""
        if self.window is None:
            return None
        size, every, offset = self.window
        start = None if offset is None else msgspec.convert(offset, tp)
        return Sliding(_amount(size, tp), _amount(every, tp), start)


def _amount(kept: Any, tp: Any) -> Any:
    """What is added to times of a type; a number may be of another kind than they are."""
    if isinstance(kept, (int, float)):
        return kept
    return msgspec.convert(kept, dt.timedelta if tp in (dt.datetime, dt.date) else tp)


@dataclass(frozen=True)
class FlowShape:
    """The steps of a flow in its order, and the clocks of its sources."""

    steps: tuple[StepTimes, ...]
    sources: dict[str, SourceTimes] = field(default_factory=dict)

    def sources_of(self, number: int) -> tuple[str, ...]:
        """The names of the sources that lead to a step, or are it."""
        step = self.steps[number]
        if step.verb == "source":
            return (step.name,)
        names = {name for read in step.inputs for name in self.sources_of(read)}
        return tuple(sorted(names))

    def clocks_of(self, number: int) -> tuple[tuple[str, ...], ...]:
        """The upstream sources of a step, by clock."""
        step = self.steps[number]
        if step.verb == "source":
            return ((step.name,),)
        before = [self.clocks_of(read) for read in step.inputs]
        if step.verb == "join_clocks":
            return tuple(clock for clocks in before for clock in clocks)
        if any(len(clocks) > 1 for clocks in before):
            return before[0]
        return (tuple(sorted({name for clocks in before for name in clocks[0]})),)

    def downstream_of(self, name: str) -> set[str]:
        """The names of a step, of all steps downstream of it, and of those in their bodies."""
        found: set[int] = set()
        for number, step in enumerate(self.steps):
            if step.name == name or found.intersection(step.inputs):
                found.add(number)
        return {step.name for n in found for _, step in self.steps[n].with_body()}

    def is_by_the_clock(self, source: str) -> bool:
        """Are the times of a source wall-clock times?"""
        return self.sources[source].kind in ("datetime", "date")


def topology_of(job: Job) -> FlowShape:
    """The topology of a job."""
    steps = job.flow.steps
    return FlowShape(
        tuple(map(_step, steps)),
        {step.name: _source(job, step) for step in steps if isinstance(step, s.Source)},
    )


def _step(step: s.Step) -> StepTimes:
    window = step.window if isinstance(step, s.AggregateWindows) else None
    kept = None
    if isinstance(window, Sliding):
        kept = tuple(map(msgspec.to_builtins, (window.size, window.every, window.offset)))
    body = tuple(map(_in_a_body, step.body)) if isinstance(step, s.Iterate) else ()
    return StepTimes(step.name, step.verb, step.inputs, needs_watermarks(step), kept, body)


def _in_a_body(step: s.Step) -> StepTimes:
    """A step of a body; its windows end in rounds, which no source has."""
    return replace(_step(step), window=None)


def _source(job: Job, step: s.Source) -> SourceTimes:
    bound = job.sources[step.name]
    is_asked = job.watermark_tracker_of(step.name) is not None
    tp = int if step.time is None else job.topology.source_segment(step.name).input_type.time
    name = getattr(tp, "__name__", "")
    return SourceTimes(
        kind=name if is_asked and _KINDS.get(name) is tp else "",
        delay=None if step.watermark is None else msgspec.to_builtins(step.watermark.delay),
        is_numbered=step.time is None,
        is_ours=isinstance(bound, SourceConnector),
        has_partitions=isinstance(bound, SourceConnector) and bound.has_partitions,
        idle_after=bound.idle_after if isinstance(bound, SourceConnector) else None,
    )


def write_topology(checkpoint: Path, topology: FlowShape) -> None:
    """Store the topology of a run in its checkpoint."""
    write_json(checkpoint / _FILE, asdict(topology))


def read_topology(checkpoint: Path) -> FlowShape:
    """The topology of the newest run of a checkpoint."""
    path = checkpoint / _FILE
    found = read_json(path, _WHAT)
    if found is None:
        raise RefusedError(
            Problem(
                "no-topology",
                f"the checkpoint {checkpoint} does not say which steps its flow has: no run of it "
                "has started yet",
                "start the flow once; it need not end",
            )
        )
    try:
        return msgspec.convert(found, FlowShape)
    except msgspec.ValidationError as error:
        raise damaged(path, _WHAT, error) from None
