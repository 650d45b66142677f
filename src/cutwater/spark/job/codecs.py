"""The codecs of a job: for events, watermarks, states, and logs of loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cutwater.codec import Codec
from cutwater.flow.fusing import Segment
from cutwater.flow.state_snapshots import time_kept_as
from cutwater.spark.exchange.event_codec import EventCodec
from cutwater.spark.exchange.log_lines import LogLines
from cutwater.spark.job.column_requirements import ColumnRequirements
from cutwater.spark.job.loops import Loops
from cutwater.spark.job.topology import Topology
from cutwater.spark.state.storage import Storage, storage_of

__all__ = ["Codecs"]


@dataclass(frozen=True)
class Codecs:
    """The codecs of a job, made when they are first used."""

    topology: Topology
    requirements: ColumnRequirements
    loops: Loops

    @cached_property
    def event_codecs(self) -> dict[int, EventCodec]:
        """The codec of events, for each stateful segment."""
        stateful = (segment for segment in self.topology.plan.segments if segment.is_stateful)
        return {s.number: EventCodec(self.topology.plan, s, self.requirements) for s in stateful}

    @cached_property
    def log_lines(self) -> dict[str, LogLines]:
        """The codec of events, for each log of a loop."""
        timed = self.requirements.times
        return {
            log.name: LogLines(log, self.topology.source_segment(log.name).number in timed)
            for log in self.loops.logs
        }

    @cached_property
    def storages(self) -> dict[int, Storage]:
        """How the states of each stateful segment are stored."""
        return {
            number: storage_of(
                self.topology.plan.segments[number],
                codec.key if number in self.requirements.keys else None,
                codec.time if number in self.requirements.watermarks else None,
            )
            for number, codec in self.event_codecs.items()
        }

    @cached_property
    def watermark_codecs(self) -> dict[str, Codec]:
        """The codec of watermarks, for each source that has one."""
        times = {
            name: self.topology.source_segment(name).output.time
            for name in self.requirements.watermark_sources
        }
        return {name: Codec(time_kept_as(tp)) for name, tp in times.items()}

    def newly_completed(
        self, segment: Segment, before: Mapping[str, bytes], after: Mapping[str, bytes]
    ) -> Any | None:
        """The watermark of a segment, if it uses watermarks and this one is new."""
        if segment.number not in self.requirements.watermarks:
            return None
        old, new = (
            self.requirements.completed(segment, self._decoded(watermarks))
            for watermarks in (before, after)
        )
        is_news = new is not None and (old is None or not new <= old)
        return new if is_news else None

    def reached(self, segment: Segment, watermarks: Mapping[str, bytes]) -> list[tuple[str, Any]]:
        """The position of each source on which a segment's watermark depends."""
        known = self._decoded(watermarks)
        names = sorted(self.requirements.sources[segment.number])
        return [(name, known[name]) for name in names]

    def _decoded(self, watermarks: Mapping[str, bytes]) -> dict[str, Any]:
        return {name: self.watermark_codecs[name].decode(time) for name, time in watermarks.items()}
