"""A job: a plan bound to real sources and sinks, as every Spark process needs it."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, Literal

from cutwater.codec import Codec
from cutwater.endings import of_unexpected
from cutwater.errors import CutwaterError, Problem, RefusedError, embed
from cutwater.flow import Flow
from cutwater.flow.fusing import Plan, Segment, plan
from cutwater.flow.state_snapshots import time_kept_as
from cutwater.flow.steps import FromLog, Source, ToLog
from cutwater.flow.steps import Sink as SinkStep
from cutwater.flow.timely.bodies import with_bodies
from cutwater.flow.timely.cutting import cut
from cutwater.flow.travel.pickling import by_value
from cutwater.flow.travel.unpicklable import unpicklable
from cutwater.flow.user_modules import held_by, own_modules
from cutwater.ordering import NO_KEY, bucket_of
from cutwater.spark.connectors.base.sink import Claim, Sink
from cutwater.spark.connectors.base.source import Feed
from cutwater.spark.connectors.base.watermarks import Clock, Numbering, PartitionClock, SourceClock
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.exchange.bucket_hash import labels
from cutwater.spark.exchange.envelope import END, EVERYONE
from cutwater.spark.exchange.event_codec import Letters
from cutwater.spark.exchange.log_lines import LogLines
from cutwater.spark.job.column_requirements import Needs
from cutwater.spark.operators.aggregation import Aggregation, aggregation_of
from cutwater.spark.state.storage import Storage, storage_of

__all__ = [
    "BUCKETS",
    "MICROBATCH",
    "REALTIME",
    "Engine",
    "Job",
    "load_job",
    "spark_plan",
    "speaking",
]

Engine = Literal["microbatch", "realtime"]
MICROBATCH: Engine = "microbatch"
REALTIME: Engine = "realtime"
BUCKETS = 16
"""Into how many buckets the keys of every step fall; fixed for the life of a checkpoint."""


def spark_plan(flow: Flow) -> Plan:
    """The flow as segments; where there are no times, values are numbered, so times are whole."""
    return plan(flow, numbered=int)


@dataclass(frozen=True)
class Job:
    """A flow with its bindings. Travels to every process as bytes, never to a checkpoint."""

    flow: Flow
    sources: dict[str, Feed | Frame]
    sinks: dict[str, Sink]
    """Where each sink goes; bad records of a source go to the sink ``bad records: <source>``."""
    query_id: str
    generation: int
    buckets: int
    checkpoint: str
    parallelism: int = 2
    skip_bad_records: bool = False
    permute: int | None = None
    """A seed: buckets shuffle what they get before they sort it; no result may depend on it."""
    is_ending: bool = False
    """Do the sources send nothing but the end of the input?"""
    engine: Engine = MICROBATCH
    """What runs it; a checkpoint belongs to one of them."""
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
    def logs(self) -> tuple[FromLog, ...]:
        """What comes out of the logs of a loop that is cut: fed back, and left. Often none."""
        return tuple(step for step in self.plan.flow.steps if isinstance(step, FromLog))

    @cached_property
    def own_sinks(self) -> list[str]:
        """The sinks that the flow names itself."""
        return [step.name for step in self.flow.steps if isinstance(step, SinkStep)]

    def side_of_loop(self, segment: Segment) -> Literal["before", "inside", "behind"]:
        """Where a segment is, seen from a loop that is cut: before it if there is none."""
        leading = self.needs.sources[segment.number]
        found = {log.is_again for log in self.logs if log.name in leading}
        return "before" if not found else "inside" if True in found else "behind"

    def log_into(self, sink: str) -> ToLog | None:
        """What is put into a log of a loop, if that is where a sink goes."""
        steps = (step for step, _ in self.plan.sinks if step.name == sink)
        return next((step for step in steps if isinstance(step, ToLog)), None)

    @cached_property
    def has_frames(self) -> bool:
        """Is any source a DataFrame, which Spark alone plans and replays?"""
        return any(isinstance(bound, Frame) for bound in self.sources.values())

    @property
    def survives_power_loss(self) -> bool:
        """Can each epoch be run again after the machine died?"""
        return self.fsync and not self.has_frames

    @cached_property
    def needs(self) -> Needs:
        """What each segment must be told with its events."""
        return Needs(self.plan)

    @cached_property
    def labels(self) -> Sequence[int]:
        """The group label of each bucket."""
        return labels(self.buckets)

    @cached_property
    def source_ranks(self) -> dict[str, int]:
        """The place of each source in the order: by name."""
        return {name: rank for rank, name in enumerate(sorted(self.sources))}

    @cached_property
    def gated(self) -> list[str]:
        """The sources whose rows pass a gate: DataFrames with a watermark."""
        return [
            name
            for name, bound in sorted(self.sources.items())
            if isinstance(bound, Frame) and self.source_step(name).watermark
        ]

    def gate_of(self, source: str) -> int:
        """The number by which rows are addressed to the gate of a source."""
        return EVERYONE - 1 - self.source_ranks[source]

    def feed_of(self, source: str) -> Feed:
        """What a source that we read ourselves is bound to."""
        bound = self.sources[source]
        assert isinstance(bound, Feed)
        return bound

    def source_step(self, source: str) -> Source:
        """The step of a source."""
        step = self.source_segment(source).source
        assert step is not None
        return step

    def source_segment(self, source: str) -> Segment:
        """The segment that begins with a source."""
        return next(s for s in self.plan.segments if s.source and s.name == source)

    def clock_of(self, source: str) -> SourceClock | None:
        """The clock of a source that has a watermark rule, or whose numbers matter."""
        segment = self.source_segment(source)
        step = segment.source
        if isinstance(step, FromLog):
            return None
        if step and step.watermark:
            bound = self.sources.get(source)
            if isinstance(bound, Feed) and bound.has_partitions:
                return PartitionClock(step, segment.given, bound.idle_after)
            return Clock(step, segment.given)
        is_numbered = step is not None and step.time is None
        return Numbering() if is_numbered and segment.number in self.needs.times else None

    @cached_property
    def letters(self) -> dict[int, Letters]:
        """How the events that come to each stateful segment are written."""
        stateful = (segment for segment in self.plan.segments if segment.is_stateful)
        return {s.number: Letters(self.plan, s, self.needs) for s in stateful}

    @cached_property
    def log_lines(self) -> dict[str, LogLines]:
        """How the events in each log of a loop are written."""
        timed = self.needs.times
        return {
            log.name: LogLines(log, self.source_segment(log.name).number in timed)
            for log in self.logs
        }

    @cached_property
    def aggregations(self) -> dict[int, Aggregation]:
        """The segments that are running aggregates over whole columns."""
        found = {
            segment.number: aggregation_of(segment, is_timed=segment.number in self.needs.times)
            for segment in self.plan.segments
        }
        return {number: aggregation for number, aggregation in found.items() if aggregation}

    def wakes(self, segment: Segment, label: int) -> bool:
        """Has the segment a state in this bucket before its first event?"""
        return segment.operator.is_awake and label == self.home

    @cached_property
    def home(self) -> int:
        """The label of the bucket of what has no key."""
        return self.labels[bucket_of(NO_KEY, self.buckets)]

    def minds_order(self, segment: Segment) -> bool:
        """Does anyone need to know in which order a segment emits?"""
        if self.sinks_after[segment.number] and not self.shows_records:
            return True
        for number, _ in self.plan.readers[segment.number]:
            reader, aggregation = self.plan.segments[number], self.aggregations.get(number)
            is_folded = aggregation is not None and aggregation.is_folded_early
            if not is_folded and (reader.is_stateful or self.minds_order(reader)):
                return True
        return False

    @cached_property
    def storages(self) -> dict[int, Storage]:
        """How the states of each stateful segment are kept."""
        return {
            number: storage_of(
                self.plan.segments[number],
                letters.key if number in self.needs.keys else None,
                letters.time if number in self.needs.watermarks else None,
            )
            for number, letters in self.letters.items()
        }

    @cached_property
    def mark_codecs(self) -> dict[str, Codec]:
        """How what a source has completed is encoded, for each source that tells it."""
        times = {name: self.source_segment(name).output.time for name in self.needs.telling}
        return {name: Codec(time_kept_as(tp)) for name, tp in times.items()}

    def newly_completed(
        self, segment: Segment, before: Mapping[str, bytes], after: Mapping[str, bytes]
    ) -> Any | None:
        """The watermark of a segment, if it is one it heeds and has not had yet."""
        if segment.number not in self.needs.watermarks:
            return None
        old, new = (
            self.needs.completed(segment, self._decoded(marks)) for marks in (before, after)
        )
        is_news = new is not None and (old is None or not new <= old)
        return new if is_news else None

    def _decoded(self, marks: Mapping[str, bytes]) -> dict[str, Any]:
        return {name: self.mark_codecs[name].decode(time) for name, time in marks.items()}

    def is_last(self, level: int, kind: int) -> bool:
        """Does a notice end at this level, since no deeper one heeds it?"""
        deeper = [segment for level in self.levels[level + 1 :] for segment in level]
        return not any(kind == END or s.number in self.needs.watermarks for s in deeper)

    @cached_property
    def sink_names(self) -> list[str]:
        """Sinks in the order of their numbers."""
        return list(self.sinks) or [sink.name for sink, _ in self.plan.sinks]

    @property
    def shows_records(self) -> bool:
        """Does what sinks are given become a DataFrame, since they are bound to nothing?"""
        return not self.sinks

    def target_of_sink(self, name: str) -> int:
        """The number by which rows are addressed to a sink; segments have the smaller ones."""
        return len(self.plan.segments) + self.sink_names.index(name)

    def sink_at(self, target: int) -> str:
        """The name of the sink with a number."""
        return self.sink_names[target - len(self.plan.segments)]

    def type_of_sink(self, target: int) -> Any:
        """What the records of a sink are, by its number."""
        return self.record_of(self.sink_at(target))

    def record_of(self, sink: str) -> Any:
        """What the records of a sink are; lines, if it is none of the flow's own."""
        numbers = [number for step, number in self.plan.sinks if step.name == sink]
        return self.plan.segments[numbers[0]].output.value if numbers else bytes

    @property
    def has_scattered_lanes(self) -> bool:
        """Would a lane of a sink that shows rows early be written by several tasks?"""
        is_early = any(sink.release == "early" for sink in self.sinks.values())
        return is_early and not self.levels and not self.gated

    def claim_of(self, sink: str) -> Claim:
        """In whose name a sink is written to."""
        return Claim(
            self.flow.name,
            sink,
            self.query_id,
            self.generation,
            self.checkpoint,
            is_in_lockstep=self.engine == MICROBATCH,
        )

    @cached_property
    def sinks_after(self) -> dict[int, list[int]]:
        """For each segment the sinks it feeds, as targets."""
        fed: dict[int, list[int]] = {segment.number: [] for segment in self.plan.segments}
        for sink, number in self.plan.sinks:
            fed[number].append(self.target_of_sink(sink.name))
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

    def __reduce__(self) -> tuple[Any, ...]:
        return Job, tuple(getattr(self, field.name) for field in fields(self))

    def to_bytes(self) -> bytes:
        """The job for another process, with the user's own modules by value.

        Other processes need not be able to import the file in which the flow is defined.
        """
        bound = [*self.sources.values(), *self.sinks.values()]
        held = held_by([*with_bodies(self.flow.steps), *bound])
        modules = [sys.modules[name] for name in own_modules(held)]
        try:
            return by_value(self, modules)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            found = unpicklable(self.flow.steps) or [_cannot_travel(self.flow, error)]
            raise RefusedError(found) from error


def _cannot_travel(flow: Flow, error: Exception) -> Problem:
    return Problem(
        "flow-cannot-travel",
        f"flow '{flow.name}' cannot be sent to Spark's processes: {error}",
        "open files, connections and locks inside the functions that use them",
    )


@lru_cache(maxsize=4)
def load_job(data: bytes) -> Job:
    """The job that was sent; a process unpacks each job once."""
    job = pickle.loads(data)
    assert isinstance(job, Job)
    return job


@contextmanager
def speaking() -> Iterator[None]:
    """Around what Spark calls: our errors reach the driver as sentences, not as stack traces."""
    try:
        yield
    except CutwaterError as error:
        raise RuntimeError(embed(error)) from error
    except (OSError, MemoryError) as error:
        raise RuntimeError(embed(of_unexpected(error))) from error
