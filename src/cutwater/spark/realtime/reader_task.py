"""A reader: cuts the input of a source into ticks, plans them durably, and sends them on."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from cutwater.spark.exchange.envelope import Parcel
from cutwater.spark.job.spec import Job, load_job, speaking
from cutwater.spark.operators.reading import Reading, news_of, notices
from cutwater.spark.realtime.opening import Opening, source_plan
from cutwater.spark.realtime.plan_log import Plan, PlanLog, PlannedTick, read_plan, write_plan
from cutwater.spark.realtime.positions import Position
from cutwater.spark.realtime.protocol import AHEAD, IDLE_BORDER_TICKS, TICK_S
from cutwater.spark.realtime.wire import border_rows, tick_rows
from cutwater.spark.stopping import StopRequest

__all__ = ["ReaderTask", "reader"]

_NUDGE_S = 0.05
_LARGE_PLAN = 1 << 20
"""A plan of more bytes is shortened to what no snapshot has."""


def reader(
    job: bytes, opening: Opening, *, is_catching_up: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What Spark runs for each source. Its own input is empty, and ends when the batch does."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        is_over = threading.Event()

        def drain() -> None:
            for _ in batches:
                pass
            is_over.set()

        threading.Thread(target=drain, daemon=True).start()
        with speaking():
            task = ReaderTask(load_job(job), opening, context.partitionId())
            if is_catching_up:
                task.freeze()
            yield from task.rows(is_over.is_set)

    return read


class ReaderTask:
    """The reader of one source during one batch of Spark's."""

    def __init__(
        self,
        job: Job,
        opening: Opening,
        number: int,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._job, self._opening, self._number = job, opening, number
        self._now, self._sleep = now, sleep
        self._source = opening.sources[number]
        self._path = opening.plan_path(self._source)
        self._start = opening.snapshots.common()
        self._log = PlanLog(self._path)
        self._plan = source_plan(job, self._source, now)
        self._plan.note(self._log.plan.chunks_through(self._log.plan.newest))
        self._reading = Reading(job, self._source)
        self._receivers = {
            label: bucket % opening.partitions for bucket, label in enumerate(job.labels)
        }
        self._position = Position(opening.reader_position(number))
        self._under_way: deque[int] = deque()
        self._planned = -1
        self._amount = self._ticks = 0
        self._sent = self._start
        self._is_frozen = False

    def freeze(self) -> None:
        """From now on take only what is there now."""
        self._plan.freeze()
        self._is_frozen = True

    def rows(self, is_over: Callable[[], bool]) -> Iterator[pa.RecordBatch]:
        """Replay what is planned and in no snapshot; then cut new ticks until the batch is over."""
        try:
            yield from self._rows(is_over)
        finally:
            self.close()

    def close(self) -> None:
        """Let go of its files."""
        self._log.close()
        self._position.close()

    def _rows(self, is_over: Callable[[], bool]) -> Iterator[pa.RecordBatch]:
        for planned in self._log.plan.after(self._start):
            yield from self._send(planned)
        yield from self._border(self._newest_known())
        request = StopRequest(self._opening.checkpoint)
        while not (is_over() or request.is_made()):
            began = self._now()
            yield from self._step()
            self._sleep(max(0.0, TICK_S - (self._now() - began)))
        yield from self._border(max(self._sent, self._opening.planned()))
        request.see(self._source)
        # Spark ends the task of a reader only with its batch, so operators hear no end: they are
        # led to a tick with a snapshot, again and again, until the driver has seen it.
        while not is_over() and request.is_made():
            yield from self._border(self._last_tick())
            self._sleep(_NUDGE_S)

    def _last_tick(self) -> int:
        """The first tick with a snapshot that has all that any reader has planned."""
        newest, every = max(self._sent, self._opening.planned()), self._opening.snapshot_ticks
        return -(-newest // every) * every

    def _newest_known(self) -> int:
        """K (rule 1): nothing new comes into a tick that may have been released."""
        return max(self._opening.known_ticks())

    def _step(self) -> Iterator[pa.RecordBatch]:
        """One tick: what there is to read, or a border if others wait for one."""
        has_sent_records = bool(self._under_way) and self._under_way[-1] == self._sent
        if self._job.is_ending:
            self._tell(is_caught_up=True)
        elif self._has_room():
            chunks = self._plan.take()
            if chunks:
                planned = PlannedTick(self._next_tick(), tuple(chunks))
                self._log.append(planned)  # rule 2: durable before its border leaves
                self._plan.note(chunks)
                yield from self._send(planned)
                return
            self._tell(is_caught_up=self._is_frozen)
        tick = self._next_tick()
        is_waited_for = self._opening.planned() > self._sent
        if has_sent_records or is_waited_for or tick - self._sent >= IDLE_BORDER_TICKS:
            yield from self._border(max(tick, self._opening.planned()))
        self._shorten()

    def _next_tick(self) -> int:
        return max(self._sent + 1, self._opening.tick_now(TICK_S, self._now()))

    def _has_room(self) -> bool:
        """Backpressure (rule 8): only so many ticks are under way."""
        released = self._opening.released() if self._under_way else -1
        while self._under_way and self._under_way[0] <= released:
            self._under_way.popleft()
        return len(self._under_way) < AHEAD

    def _send(self, planned: PlannedTick) -> Iterator[pa.RecordBatch]:
        reads = [chunk for chunk in planned.chunks if not chunk.is_decision]
        parcels = self._reading.parcels(reads)
        parcels += self._notices(planned)
        self._under_way.append(planned.tick)
        self._sent = self._planned = planned.tick
        self._amount += sum(map(self._job.feed_of(self._source).tally, reads))
        self._ticks += 1
        self._tell(is_caught_up=False)
        yield from tick_rows(
            self._number, planned.tick, parcels, self._receivers, self._opening.partitions
        )

    def _notices(self, planned: PlannedTick) -> list[Parcel]:
        """What all buckets are told; that the input ends, by one source for all."""
        news = news_of(self._job, self._source, planned.chunks) if planned.chunks else None
        is_end = planned.is_end and self._number == 0
        return notices(self._job, self._source, news, is_end=is_end)

    def _border(self, tick: int) -> Iterator[pa.RecordBatch]:
        self._sent = tick
        yield from border_rows(self._number, tick, self._opening.partitions)

    def _tell(self, *, is_caught_up: bool) -> None:
        self._position.tell(self._planned, int(is_caught_up), self._amount, self._ticks)

    def _shorten(self) -> None:
        """Forget of the plan what a snapshot has (rule 3)."""
        if self._log.size < _LARGE_PLAN:
            return
        tick, plan = self._opening.snapshots.common(), read_plan(self._path)
        if tick > plan.through:
            base = self._plan.condensed(plan.chunks_through(tick))
            write_plan(self._path, Plan(tuple(base), tick, plan.after(tick)))
            self._log.close()
            self._log = PlanLog(self._path)
