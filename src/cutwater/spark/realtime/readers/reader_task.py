"""The first reader of a source: cuts its input into ticks, plans them durably, and sends them.

Others of the same source read a share of what it planned: see `follower_task`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.exchange.envelope import ShuffleRow
from cutwater.spark.job.error_boundary import error_boundary
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import load_job
from cutwater.spark.operators.reading import Reading, control_rows, new_watermark
from cutwater.spark.realtime.opening import Opening, source_plan
from cutwater.spark.realtime.plan_log import PlanLog, PlannedTick, TickPlan, read_plan, write_plan
from cutwater.spark.realtime.positions import PositionFile, ReaderPosition
from cutwater.spark.realtime.protocol import AHEAD, IDLE_BARRIER_TICKS, TICK_S
from cutwater.spark.realtime.readers.follower_task import FollowerTask
from cutwater.spark.realtime.readers.pace import Pace
from cutwater.spark.realtime.wire import barrier_rows, nudge_rows, tick_rows
from cutwater.spark.stopping import StopRequest

__all__ = ["ReaderTask", "reader"]

_BATCH = "streaming.sql.batchId"
_NUDGE_S = 0.05
"""How often a reader that stops repeats its last barrier, until the driver has seen the end."""
_LARGE_PLAN = 1 << 20
"""A plan larger than this many bytes is compacted to the ticks that no snapshot has."""


def reader(
    job: bytes, opening: Opening, *, is_catching_up: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What Spark runs for each reader. Its Spark input is empty, and ends when the batch does."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        number, batch = context.partitionId(), int(context.getLocalProperty(_BATCH) or 0)
        is_over = threading.Event()

        def drain() -> None:
            for _ in batches:
                pass
            is_over.set()

        threading.Thread(target=drain, daemon=True).start()
        with error_boundary(), opening.noting_failure():
            if number != opening.leader_of(number):
                yield from FollowerTask(load_job(job), opening, number, batch).rows(is_over.is_set)
                return
            task = ReaderTask(load_job(job), opening, number, batch)
            if is_catching_up:
                task.freeze()
            yield from task.rows(is_over.is_set)

    return read


class ReaderTask:
    """The first reader of one source during one Spark batch."""

    def __init__(
        self,
        job: Job,
        opening: Opening,
        number: int,
        batch: int = 0,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._job, self._opening, self._number = job, opening, number
        self._now, self._sleep = now, sleep
        self._batch = batch
        self._source = opening.source_of(number)
        self._path = opening.plan_path(self._source)
        self._start = opening.snapshots.common()
        self._log = PlanLog(self._path)
        self._plan = source_plan(job, self._source, now)
        self._plan.advance(self._log.plan.chunks_through(self._log.plan.newest))
        self._reading = Reading(job, self._source)
        self._receivers = opening.receivers(job.addresses.labels)
        self._position = PositionFile(opening.reader_position(number))
        self._in_flight: deque[int] = deque()
        self._planned = -1
        self._amount = self._ticks = 0
        self._sent = self._start
        self._is_frozen = self._is_caught_up = False
        self._pace = Pace()
        self._syncing = ThreadPoolExecutor(1)

    def freeze(self) -> None:
        """From now on plan only input that exists now."""
        self._plan.freeze()
        self._is_frozen = True

    def rows(self, is_over: Callable[[], bool]) -> Iterator[pa.RecordBatch]:
        """Replay what is planned and in no snapshot; then cut new ticks until the batch is over."""
        try:
            yield from self._rows(is_over)
        finally:
            self.close()

    def close(self) -> None:
        """Release its files."""
        self._syncing.shutdown()
        self._log.close()
        self._position.close()

    def _rows(self, is_over: Callable[[], bool]) -> Iterator[pa.RecordBatch]:
        if not (yield from self._replay(is_over)):
            return
        request = StopRequest(self._opening.checkpoint)
        while not (is_over() or request.is_made()):
            began = self._now()
            yield from self._step()
            now = self._now()
            self._sleep(self._pace.wait_s(now, now - began))
        yield from self._barrier(max(self._sent, self._opening.planned()))
        request.see(self._source)
        # Spark ends the task of a reader only with its batch, so operators see no end of input:
        # barriers lead them to a tick with a snapshot, repeatedly, until the driver has seen it.
        while not is_over() and request.is_made():
            yield from self._barrier(self._last_tick())
            self._sleep(_NUDGE_S)

    def _replay(self, is_over: Callable[[], bool]) -> Generator[pa.RecordBatch, None, bool]:
        """Send planned ticks that are in no snapshot, with the same backpressure as new ones.

        Returns False if the batch ended before all of them were sent: no barrier may pass the
        rest, or a snapshot without their records would count (rule 7). The next batch replays them.
        """
        for planned in self._log.plan.after(self._start):
            while not self._has_room():
                if is_over():
                    return False
                yield from nudge_rows(self._opening.partitions)
                self._sleep(TICK_S)
            yield from self._send(planned, self._shuffle_rows(planned))
        yield from self._barrier(self._newest_known())
        return True

    def _last_tick(self) -> int:
        """The first snapshot tick that covers everything that any reader has planned."""
        newest, every = max(self._sent, self._opening.planned()), self._opening.snapshot_ticks
        return -(-newest // every) * every

    def _newest_known(self) -> int:
        """K (rule 1): nothing new comes into a tick that may have been released."""
        return max(self._opening.known_ticks())

    def _step(self) -> Iterator[pa.RecordBatch]:
        """One tick: the available input, or a barrier if others wait for one."""
        if self._job.is_ending:
            self._report(is_caught_up=True)
        elif self._is_to_cut() and self._has_room():
            chunks = self._plan.poll()
            if chunks:
                yield from self._cut(chunks)
                return
            self._report(is_caught_up=self._is_frozen)
        waited_for, tick = self._opening.planned(), self._next_tick()
        if waited_for > self._sent:  # no further: records may come in the next tick
            yield from self._barrier(waited_for)
        elif tick - self._sent >= IDLE_BARRIER_TICKS:
            yield from self._barrier(tick)
        self._compact_plan()

    def _is_to_cut(self) -> bool:
        """Is it time for a tick?"""
        now = self._now()
        return self._pace.is_due(now, has_number=self._opening.tick_at(now) > self._sent)

    def _cut(self, chunks: list[Chunk]) -> Iterator[pa.RecordBatch]:
        planned = PlannedTick(self._next_tick(), tuple(chunks))
        durable = self._syncing.submit(self._log.append, planned)
        try:
            rows = self._shuffle_rows(planned)  # decode while the disk syncs
        finally:
            durable.result()  # rule 2: durable before its barrier is sent
        self._plan.advance(chunks)
        self._pace.note_cut(self._now(), len(self._in_flight))
        yield from self._send(planned, rows)

    def _next_tick(self) -> int:
        return max(self._sent + 1, self._opening.tick_at(self._now()))

    def _has_room(self) -> bool:
        """Backpressure (rule 8): is the number of ticks in flight below its limit?"""
        released = self._opening.released() if self._in_flight else -1
        while self._in_flight and self._in_flight[0] <= released:
            self._in_flight.popleft()
        return len(self._in_flight) < AHEAD

    def _shuffle_rows(self, planned: PlannedTick) -> list[ShuffleRow]:
        """Its own share of a tick, and the control rows for all buckets."""
        share = self._opening.share_of(self._number, planned.chunks)
        return [*self._reading.rows(share), *self._control_rows(planned)]

    def _send(self, planned: PlannedTick, rows: list[ShuffleRow]) -> Iterator[pa.RecordBatch]:
        reads = [chunk for chunk in planned.chunks if not chunk.is_decision]
        self._in_flight.append(planned.tick)
        self._sent = self._planned = planned.tick
        self._amount += sum(map(self._job.connector_of(self._source).measure, reads))
        self._ticks += 1
        self._report(is_caught_up=False)
        yield from tick_rows(
            self._number, planned.tick, rows, self._receivers, self._opening.partitions
        )

    def _control_rows(self, planned: PlannedTick) -> list[ShuffleRow]:
        """The control rows for all buckets; one reader alone announces the end of the input."""
        news = new_watermark(self._job, self._source, planned.chunks) if planned.chunks else None
        is_end = planned.is_end and self._number == 0
        return control_rows(self._job, self._source, news, is_end=is_end)

    def _barrier(self, tick: int) -> Iterator[pa.RecordBatch]:
        self._sent = tick
        self._report(is_caught_up=self._is_caught_up)
        yield from barrier_rows(self._number, tick, self._opening.partitions)

    def _report(self, *, is_caught_up: bool) -> None:
        """Report its position; call it only once what was decided is durable."""
        self._is_caught_up = is_caught_up
        position = ReaderPosition(
            self._planned,
            int(is_caught_up),
            self._amount,
            self._ticks,
            self._sent,
            self._batch,
            round(1_000_000 * self._pace.tick_s),
        )
        self._position.write(*position)

    def _compact_plan(self) -> None:
        """Compact the plan: drop what a snapshot has (rule 3)."""
        if self._log.size < _LARGE_PLAN:
            return
        tick, plan = self._opening.snapshots.common(), read_plan(self._path)
        if tick > plan.through:
            base = self._plan.condensed(plan.chunks_through(tick))
            write_plan(self._path, TickPlan(tuple(base), tick, plan.after(tick)))
            self._log.close()
            self._log = PlanLog(self._path)
