"""A job: a flow bound to real sources and sinks, as every Spark process needs it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

from cutwater.flow import Flow
from cutwater.flow.fusing import Plan, plan
from cutwater.flow.steps import FromLog
from cutwater.flow.steps import Sink as SinkStep
from cutwater.flow.timely.cutting import cut
from cutwater.spark.connectors.base.sink import Claim, SinkConnector
from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.spark.connectors.base.watermarks import (
    Numbering,
    PartitionWatermarkTracker,
    SourceTracker,
    WatermarkTracker,
)
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.job.addresses import Addresses
from cutwater.spark.job.codecs import Codecs
from cutwater.spark.job.column_requirements import ColumnRequirements
from cutwater.spark.job.loops import Loops
from cutwater.spark.job.topology import Topology

__all__ = [
    "BUCKETS",
    "MICROBATCH",
    "REALTIME",
    "Engine",
    "Job",
    "spark_plan",
]

Engine = Literal["microbatch", "realtime"]
MICROBATCH: Engine = "microbatch"
REALTIME: Engine = "realtime"
BUCKETS = 16
"""The number of buckets of every step; fixed for the life of a checkpoint."""


def spark_plan(flow: Flow) -> Plan:
    """The flow as segments; where there are no times, values are numbered, so times are whole."""
    return plan(flow, numbered=int)


@dataclass(frozen=True)
class Job:
    """A flow with its bindings. Sent to every process (`transport`), never to a checkpoint."""

    flow: Flow
    sources: dict[str, SourceConnector | Frame]
    sinks: dict[str, SinkConnector]
    """Where each sink goes; bad records of a source go to the sink ``bad records: <source>``."""
    query_id: str
    generation: int
    buckets: int
    checkpoint: str
    parallelism: int = 2
    skip_bad_records: bool = False
    permute: int | None = None
    """A seed: buckets shuffle their input before they sort it; no result may depend on it."""
    is_ending: bool = False
    """Do the sources only send the end of the input?"""
    engine: Engine = MICROBATCH
    """The engine; a checkpoint belongs to one of them."""
    fsync: bool = True
    """Are Spark's checkpoint files synced before each epoch?"""
    feeds_back: bool = False
    """May a loop feed back through a log? Else all rounds of each run in one epoch."""

    @cached_property
    def plan(self) -> Plan:
        """The flow as segments; a loop that feeds back through a log is cut there."""
        steps = cut(self.flow.steps) if self.feeds_back else self.flow.steps
        is_cut = len(steps) > len(self.flow.steps)
        return spark_plan(Flow(self.flow.name, steps) if is_cut else self.flow)

    @cached_property
    def requirements(self) -> ColumnRequirements:
        """The columns that each segment needs with its events."""
        return ColumnRequirements(self.plan)

    @cached_property
    def addresses(self) -> Addresses:
        """The labels of its buckets, and the numbers of its sinks and late filters."""
        return Addresses(self.plan, self.sources, self.sinks, self.buckets)

    @cached_property
    def loops(self) -> Loops:
        """Its loops that feed back through a log."""
        return Loops(self.plan, self.requirements, self.addresses)

    @cached_property
    def topology(self) -> Topology:
        """Its segments and levels, and who sends to whom."""
        return Topology(
            self.plan, self.sources, self.sinks, self.requirements, self.addresses, self.loops
        )

    @cached_property
    def codecs(self) -> Codecs:
        """Its codecs."""
        return Codecs(self.topology, self.requirements, self.loops)

    @cached_property
    def own_sinks(self) -> list[str]:
        """The sinks that the flow names itself."""
        return [step.name for step in self.flow.steps if isinstance(step, SinkStep)]

    @cached_property
    def has_frames(self) -> bool:
        """Is any source a DataFrame, which Spark alone plans and replays?"""
        return any(isinstance(bound, Frame) for bound in self.sources.values())

    @property
    def survives_power_loss(self) -> bool:
        """Can each epoch be replayed after a power loss?"""
        return self.fsync and not self.has_frames

    def connector_of(self, source: str) -> SourceConnector:
        """What a source that we read ourselves is bound to."""
        bound = self.sources[source]
        assert isinstance(bound, SourceConnector)
        return bound

    def watermark_tracker_of(self, source: str) -> SourceTracker | None:
        """Tracks the watermark of a source that has a watermark rule, or whose numbers matter."""
        segment = self.topology.source_segment(source)
        step = segment.source
        if isinstance(step, FromLog):
            return None
        if step and step.watermark:
            bound = self.sources.get(source)
            if isinstance(bound, SourceConnector) and bound.has_partitions:
                return PartitionWatermarkTracker(step, segment.input_type, bound.idle_after)
            return WatermarkTracker(step, segment.input_type)
        is_numbered = step is not None and step.time is None
        return Numbering() if is_numbered and segment.number in self.requirements.times else None

    def claim_of(self, sink: str) -> Claim:
        """The identity with which a sink is written."""
        return Claim(
            self.flow.name,
            sink,
            self.query_id,
            self.generation,
            self.checkpoint,
            is_bulk_synchronous=self.engine == MICROBATCH,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Job, tuple(getattr(self, field.name) for field in fields(self))
