"""What is told of a real-time run about once a second, by what its tasks tell of themselves."""

from __future__ import annotations

from collections.abc import Callable

from cutwater.spark.checkpoint.sink_records import note_shown
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.job.spec import Job
from cutwater.spark.realtime.opening import Opening
from cutwater.spark.realtime.plan_log import read_plan
from cutwater.spark.realtime.positions import read_position
from cutwater.spark.telemetry.progress import Progress, Reports

__all__ = ["TickReports"]


class TickReports:
    """Reports of one generation; a batch of Spark's counts from 0, so only growth is told."""

    def __init__(self, job: Job, opening: Opening, tell: Callable[[Progress], None]) -> None:
        self._job, self._opening, self._tell = job, opening, tell
        self._reports = Reports(job)
        self._before: dict[str, int] = {}
        self._released = -1
        self.ticks = 0
        """Ticks with records that were planned, of the source with most."""

    def report(self) -> None:
        """Tell what came since the last report, if a tick was released since then."""
        released = self._opening.released()
        if released <= self._released:
            return
        self._released = released
        sinks = [sink.name for sink, _ in self._job.plan.sinks]
        rows, latency_ms = self._rows()
        self._tell(
            self._reports.of_ticks(
                released,
                latency_ms,
                {name: rows.get(name, 0) for name in sinks},
                {name: self._read(number) for number, name in enumerate(self._opening.sources)},
                self._opening.snapshots.size(),
            )
        )

    def _rows(self) -> tuple[dict[str, int], int]:
        """The rows for each sink since the last time, and the newest latency."""
        names, latency = self._job.sink_names, 0
        rows: dict[str, int] = {}
        for partition in range(self._opening.partitions):
            path = self._opening.released_position(partition)
            _, latency_ms, *told = read_position(path, 1 + 2 * len(names))
            latency = max(latency, latency_ms)
            for number, name in enumerate(names):
                count, tick = told[2 * number : 2 * number + 2]
                grown = self._growth(f"{partition} {name}", count)
                rows[name] = rows.get(name, 0) + grown
                if grown:
                    note_shown(self._job.checkpoint, tick, [name])
        return rows, latency

    def _read(self, number: int) -> tuple[int, Chunk | None]:
        _, _, amount, ticks = read_position(self._opening.reader_position(number), 3)
        name = self._opening.sources[number]
        self.ticks = max(self.ticks, ticks)
        last = read_plan(self._opening.plan_path(name)).last_chunk
        return self._growth(f"read {name}", amount), last

    def _growth(self, what: str, count: int) -> int:
        before = self._before.get(what, 0)
        self._before[what] = count
        return count - before if count >= before else count
