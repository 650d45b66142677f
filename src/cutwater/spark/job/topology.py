"""The shape of a job: its segments and levels, and who sends to whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from cutwater.flow.fusing import Plan, Segment
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.exchange.envelope import END, OVER
from cutwater.spark.job.addresses import Addresses
from cutwater.spark.job.column_requirements import ColumnRequirements
from cutwater.spark.job.loops import Loops
from cutwater.spark.operators.aggregation import Aggregation, aggregation_of

__all__ = ["Topology"]


@dataclass(frozen=True)
class Topology:
    """A plan with the names of what it is bound to; derived from it, never stored."""

    plan: Plan
    sources: Mapping[str, SourceConnector | Frame]
    sinks: Mapping[str, SinkConnector]
    requirements: ColumnRequirements
    addresses: Addresses
    loops: Loops

    @cached_property
    def late_filtered(self) -> list[str]:
        """The sources whose rows pass a late filter: DataFrames with a watermark."""
        return [
            name
            for name, bound in sorted(self.sources.items())
            if isinstance(bound, Frame) and self.source_step(name).watermark
        ]

    def source_step(self, source: str) -> Source:
        """The step of a source."""
        step = self.source_segment(source).source
        assert step is not None
        return step

    def source_segment(self, source: str) -> Segment:
        """The segment that begins with a source."""
        return next(s for s in self.plan.segments if s.source and s.name == source)

    @cached_property
    def aggregations(self) -> dict[int, Aggregation]:
        """The segments that are running aggregates over whole columns."""
        found = {
            segment.number: aggregation_of(
                segment, is_timed=segment.number in self.requirements.times
            )
            for segment in self.plan.segments
            if segment.number not in self.loops.keeps_states_per_input
        }
        return {number: aggregation for number, aggregation in found.items() if aggregation}

    def wakes(self, segment: Segment, label: int) -> bool:
        """Has the segment a state in this bucket before its first event?"""
        return segment.operator.is_awake and label == self.addresses.keyless_label

    def is_order_sensitive(self, segment: Segment) -> bool:
        """Does anything downstream need the order in which a segment emits?"""
        if self.sinks_after[segment.number] and not self.shows_records:
            return True
        for number, _ in self.plan.readers[segment.number]:
            reader, aggregation = self.plan.segments[number], self.aggregations.get(number)
            is_folded = aggregation is not None and aggregation.is_folded_early
            if not is_folded and (reader.is_stateful or self.is_order_sensitive(reader)):
                return True
        return False

    def is_last(self, level: int, kind: int) -> bool:
        """Does a control row end at this level, since no deeper one uses it?"""
        deeper = [segment for level in self.levels[level + 1 :] for segment in level]
        if kind == OVER:
            return not any(self.loops.side_of(s) == "inside" for s in deeper)
        return not any(kind == END or s.number in self.requirements.watermarks for s in deeper)

    @property
    def shows_records(self) -> bool:
        """Do the records become a DataFrame, since sinks are bound to nothing?"""
        return not self.sinks

    @property
    def has_scattered_buckets(self) -> bool:
        """Would several tasks write one bucket of a sink that releases rows early?"""
        is_early = any(sink.release == "early" for sink in self.sinks.values())
        return is_early and not self.levels and not self.late_filtered

    @cached_property
    def sinks_after(self) -> dict[int, list[int]]:
        """The sinks that each segment writes to, as targets."""
        fed: dict[int, list[int]] = {segment.number: [] for segment in self.plan.segments}
        for sink, number in self.plan.sinks:
            fed[number].append(self.addresses.target_of_sink(sink.name))
        return fed

    @cached_property
    def levels(self) -> list[list[Segment]]:
        """The stateful segments by depth: level i reads only what lower levels and sources send."""
        depth: dict[int, int] = {}
        for segment in self.plan.segments:
            below = max((depth[edge.segment] for edge in segment.inputs), default=0)
            depth[segment.number] = below + segment.is_stateful
        found: list[list[Segment]] = [[] for _ in range(max(depth.values(), default=0))]
        for segment in self.plan.segments:
            if segment.is_stateful:
                found[depth[segment.number] - 1].append(segment)
        return found

    @cached_property
    def _numbers_by_level(self) -> list[frozenset[int]]:
        return [frozenset(segment.number for segment in level) for level in self.levels]

    def segments_at(self, level: int) -> frozenset[int]:
        """The numbers of the segments of a level."""
        return self._numbers_by_level[level]
