"""The progress of a finished epoch: from Spark's own report and our logs.

It runs no Spark job, and does not read from sinks.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from cutwater.errors import CutwaterError
from cutwater.spark.checkpoint.loop_progress import inside_after, released_after
from cutwater.spark.checkpoint.offset_log import LOG
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.side_outputs import bad_records_sink, late_events_sink
from cutwater.spark.connectors.base.source import Chunk, SourceConnector
from cutwater.spark.connectors.base.watermarks import newest_of
from cutwater.spark.job.spec import Job
from cutwater.spark.storage.entry_log import read_entry
from cutwater.spark.telemetry.frontiers import (
    FrontierTracker,
    Position,
    StepFrontier,
    positions_of,
)
from cutwater.spark.telemetry.row_counts import noted_rows
from cutwater.spark.telemetry.topology import topology_of

__all__ = [
    "FrontierProgress",
    "Reports",
    "RunProgress",
    "SnapshotProgress",
    "SourceProgress",
    "lag_seconds",
]


@dataclass(frozen=True)
class SourceProgress:
    """The progress of a source."""

    read: int = 0
    """How much the epoch read, in its unit."""
    unit: str = ""
    """Bytes or rows, for example; empty: Spark itself reads it, and nothing is known."""
    newest: Any = None
    """Its newest time as JSON has it, or the number of records; None if no step uses times."""
    watermark: Any = None
    """What it has completed; None: nothing, or no step uses times."""
    lag_seconds: float | None = None
    """How far the watermark is behind the clock; None: it is no time of the clock."""
    positions: tuple[Position, ...] = ()
    """How far it is, or each of its partitions; empty: nothing is known."""


@dataclass(frozen=True)
class FrontierProgress:
    """The progress of a step that acts when times are complete."""

    completed: Any
    """The time up to which all events have arrived; None: none."""
    lag_seconds: float | None
    """How far that is behind the wall clock, infinite if none; None: not a wall-clock time."""
    holders: tuple[Position, ...]
    """Sources or partitions that hold the next time."""


@dataclass(frozen=True)
class SnapshotProgress:
    """The snapshots of a real-time run: no row waits for them, but a restart replays more."""

    tick: int
    """The newest that every task has stored; -1: none."""
    age_seconds: float
    """The age of that tick, or of the run if there is none."""
    interval_seconds: float
    """The interval that was asked for."""
    failures: int = 0
    """Tasks that could not store one since the last report."""
    why: str = ""
    """The system's message for the last failure, until a snapshot is stored."""

    @property
    def is_late(self) -> bool:
        """Is it older than three intervals?"""
        return self.age_seconds > 3 * self.interval_seconds


@dataclass(frozen=True)
class RunProgress:
    """A finished epoch."""

    epoch: int
    duration_ms: int
    """From its planning to its commit."""
    durations_ms: dict[str, int] = field(default_factory=dict)
    """Parts of it, by Spark's names."""
    rows: dict[str, int] = field(default_factory=dict)
    """Rows for each sink."""
    sources: dict[str, SourceProgress] = field(default_factory=dict)
    frontiers: dict[str, FrontierProgress] = field(default_factory=dict)
    """By step, for those that act when times are complete."""
    late: int = 0
    """Late events of all sources."""
    bad_records: int = 0
    """Records of all sources in side outputs (dead letters)."""
    state_bytes: int = 0
    """The files of the state, of all levels."""
    state_memory_bytes: int = 0
    """What the state stores hold in memory, of all levels."""
    snapshot: SnapshotProgress | None = None
    """Of a real-time run; None: a micro-batch stores its state as it ends."""


class Reports:
    """Turns Spark's reports into ours."""

    def __init__(self, job: Job, now: Callable[[], float] = time.time) -> None:
        self._job = job
        self._now = now
        self._topology = topology_of(job)
        self._tracker = FrontierTracker(self._topology)

    def of(self, report: Mapping[str, Any]) -> RunProgress:
        """An epoch, by Spark's report of it."""
        epoch = int(report["batchId"])
        durations = {name: int(value) for name, value in report["durationMs"].items()}
        rows = noted_rows(self._job.checkpoint).get(epoch, {})
        operators = report.get("stateOperators") or []
        sources = dict(self._sources(report))
        return RunProgress(
            epoch=epoch,
            duration_ms=durations.get("triggerExecution", 0),
            durations_ms=durations,
            rows={name: rows.get(name, 0) for name in self._own_sinks()},
            sources=sources,
            frontiers=dict(self._frontiers(sources, epoch)),
            late=self._side_output_rows(rows, late_events_sink),
            bad_records=self._side_output_rows(rows, bad_records_sink),
            state_bytes=sum(_metric(o, "rocksdbSstFileSize") for o in operators),
            state_memory_bytes=sum(int(o.get("memoryUsedBytes") or 0) for o in operators),
        )

    def of_ticks(
        self,
        tick: int,
        latency_ms: int,
        rows: Mapping[str, int],
        read: Mapping[str, tuple[int, Chunk | None]],
        state_bytes: int,
        snapshot: SnapshotProgress,
    ) -> RunProgress:
        """The ticks of a real-time run since the last report, up to one of them.

        `read` has for each source how much was read, and its newest chunk.
        """
        sources = {
            name: self._described(name, self._job.connector_of(name), amount, last)
            for name, (amount, last) in read.items()
        }
        return RunProgress(
            epoch=tick,
            duration_ms=latency_ms,
            rows={name: rows.get(name, 0) for name in self._own_sinks()},
            sources=sources,
            frontiers=dict(self._frontiers(sources)),
            late=self._side_output_rows(rows, late_events_sink),
            bad_records=self._side_output_rows(rows, bad_records_sink),
            state_bytes=state_bytes,
            snapshot=snapshot,
        )

    def _side_output_rows(self, rows: Mapping[str, int], named: Callable[[str], str]) -> int:
        """Rows of the side outputs of all sources."""
        return sum(rows.get(named(name), 0) for name in self._job.sources)

    def _own_sinks(self) -> list[str]:
        return self._job.own_sinks

    def _sources(self, report: Mapping[str, Any]) -> Iterator[tuple[str, SourceProgress]]:
        """Spark lists the sources in the order of the query: by name, then the logs of loops."""
        names, found = sorted(self._job.sources), report.get("sources") or []
        if len(found) != len(names) + len(self._job.loops.logs):
            return
        for name, data in zip(names, found, strict=False):
            bound = self._job.sources[name]
            ends = (_entry(data.get("startOffset")), _entry(data.get("endOffset")))
            if isinstance(bound, SourceConnector):
                yield name, self._source(name, bound, *ends)
            else:
                yield name, SourceProgress(positions=(Position(name),))

    def _frontiers(
        self, sources: Mapping[str, SourceProgress], epoch: int = -1
    ) -> Iterator[tuple[str, FrontierProgress]]:
        """Empty for every step if nothing is known of a source."""
        positions = [source.positions for source in sources.values()]
        if not positions or not all(positions):
            return
        self._tracker.move([each for of_source in positions for each in of_source])
        for found in self._steps(epoch):
            if found.waits and found.holders:
                lag = lag_seconds(found.completed, self._now())
                if found.completed is None and self._is_by_the_clock(found):
                    lag = math.inf
                yield found.step, FrontierProgress(found.completed, lag, found.holders)

    def _steps(self, epoch: int) -> Sequence[StepFrontier]:
        """The frontiers of all steps, as `cutwater frontier` has them after an epoch."""
        steps = self._tracker.steps()
        if not self._job.loops.logs:
            return steps
        checkpoint = Checkpoint(Path(self._job.checkpoint))
        if not inside_after(checkpoint, self._job.sources, epoch):
            return steps
        released = released_after(checkpoint, epoch)
        positions = [each for name in self._job.sources for each in self._position(name, released)]
        return self._tracker.steps_after_loop(self._job.loops.logs[0].loop, positions, steps)

    def _position(self, name: str, entries: Mapping[str, int]) -> list[Position]:
        chunks = self._chunks(name, entries[name]) if entries.get(name) else []
        return positions_of(
            name, self._job.watermark_tracker_of(name), chunks[-1] if chunks else None
        )

    def _is_by_the_clock(self, step: StepFrontier) -> bool:
        return any(self._topology.is_by_the_clock(name) for each in step.clocks for name in each)

    def _source(
        self, name: str, connector: SourceConnector, before: int, after: int
    ) -> SourceProgress:
        try:
            entries = [self._chunks(name, number) for number in range(before + 1, after + 1)]
            last = (entries or [self._chunks(name, after) if after else []])[-1]
        except (OSError, ValueError, CutwaterError):  # it was compacted meanwhile
            return SourceProgress(unit=connector.unit)
        read = sum(connector.measure(c) for chunks in entries for c in chunks if not c.is_decision)
        return self._described(name, connector, read, last[-1] if last else None)

    def _described(
        self, name: str, connector: SourceConnector, read: int, last: Chunk | None
    ) -> SourceProgress:
        """The progress of a source, by its newest chunk."""
        kept = last.newest_after if last else None
        tracker = self._job.watermark_tracker_of(name)
        watermark = tracker.completed(kept) if tracker and kept is not None else None
        lag = lag_seconds(watermark, self._now())
        positions = positions_of(name, tracker, last)
        return SourceProgress(
            read, connector.unit, newest_of(kept), watermark, lag, tuple(positions)
        )

    def _chunks(self, name: str, number: int) -> list[Chunk]:
        folder = Path(self._job.checkpoint) / "sources" / name
        kept = read_entry(folder, number, LOG) or []
        return [Chunk.of_json(chunk) for chunk in kept]


def lag_seconds(watermark: Any, now: float) -> float | None:
    """The lag of a time behind the clock; None if it is no time of the clock.

    >>> lag_seconds(datetime(1970, 1, 1, 0, 0, 10), now=25), lag_seconds(10, now=25)
    (15.0, None)
    """
    if isinstance(watermark, datetime):
        moment = watermark if watermark.tzinfo else watermark.replace(tzinfo=UTC)
        return now - moment.timestamp()
    if isinstance(watermark, date):
        return (
            now - datetime(watermark.year, watermark.month, watermark.day, tzinfo=UTC).timestamp()
        )
    return None


def _metric(operator: Mapping[str, Any], name: str) -> int:
    return int((operator.get("customMetrics") or {}).get(name) or 0)


def _entry(offset: Any) -> int:
    """The log entry that an offset refers to."""
    try:
        data = json.loads(offset) if isinstance(offset, str) else offset
        return int(data["entry"])
    except (ValueError, TypeError, KeyError):
        return 0
