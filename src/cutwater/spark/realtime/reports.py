"""Reports the progress of a real-time run about once a second, from the positions of its tasks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from cutwater.spark.checkpoint.sink_records import note_released
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.job.spec import Job
from cutwater.spark.realtime.opening import Opening
from cutwater.spark.realtime.plan_log import read_plan
from cutwater.spark.realtime.positions import read_position, read_reader
from cutwater.spark.realtime.protocol import TICK_S
from cutwater.spark.telemetry.progress import Reports, RunProgress, SnapshotProgress

__all__ = ["TickReports"]

_LARGEST_ERRNO = 4096
"""Positions are not durable: a file that a power loss left behind may hold any number."""


class TickReports:
    """Reports of one generation; a batch of Spark's counts from 0, so only growth is reported."""

    def __init__(
        self,
        job: Job,
        opening: Opening,
        on_progress: Callable[[RunProgress], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._job, self._opening, self._on_progress, self._now = job, opening, on_progress, now
        self._began = opening.tick_at(now())
        self._reports = Reports(job)
        self._before: dict[str, int] = {}
        self._released = -1
        self.ticks = 0
        """Ticks with records that were planned, of the source with most."""

    def report(self) -> None:
        """Report what came since the last report, if a tick was released since then."""
        released = self._opening.released()
        if released <= self._released:
            return
        self._released = released
        rows, latency_ms = self._rows()
        self._on_progress(
            self._reports.of_ticks(
                released,
                latency_ms,
                rows,
                {self._opening.source_of(n): self._read(n) for n in self._opening.leaders()},
                self._opening.snapshots.size(),
                self._snapshot(),
            )
        )

    def _snapshot(self) -> SnapshotProgress:
        """How far all tasks have stored their states, and what failed."""
        failures, why = 0, 0
        for level, partition in self._opening.tasks():
            path = self._opening.snapshot_position(level, partition)
            _, failed, number = read_position(path, 2)
            failures += self._growth(f"failed {level}.{partition}", failed)
            why = why or number
        tick = self._opening.snapshots.common()
        since = self._opening.time_of(max(tick, self._began))
        return SnapshotProgress(
            tick,
            max(0.0, self._now() - since),
            self._opening.snapshot_ticks * TICK_S,
            failures,
            os.strerror(why) if 0 < why < _LARGEST_ERRNO else "",
        )

    def _rows(self) -> tuple[dict[str, int], int]:
        """The rows for each sink since the last time, and the newest latency."""
        names, latency = self._job.addresses.sink_names, 0
        rows: dict[str, int] = {}
        for partition in range(self._opening.partitions):
            path = self._opening.released_position(partition)
            _, latency_ms, *numbers = read_position(path, 1 + 2 * len(names))
            latency = max(latency, latency_ms)
            for number, name in enumerate(names):
                count, tick = numbers[2 * number : 2 * number + 2]
                grown = self._growth(f"{partition} {name}", count)
                rows[name] = rows.get(name, 0) + grown
                if grown and name in self._job.own_sinks:
                    note_released(self._job.checkpoint, tick, [name])
        return rows, latency

    def _read(self, number: int) -> tuple[int, Chunk | None]:
        position = read_reader(self._opening.reader_position(number))
        name = self._opening.source_of(number)
        self.ticks = max(self.ticks, position.ticks)
        last = read_plan(self._opening.plan_path(name)).last_chunk
        return self._growth(f"read {name}", position.amount), last

    def _growth(self, what: str, count: int) -> int:
        before = self._before.get(what, 0)
        self._before[what] = count
        return count - before if count >= before else count
