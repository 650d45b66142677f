"""An operator: works on ticks that have come whole, releases them, and stores snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from cutwater.spark.exchange.batch import much_at_once
from cutwater.spark.exchange.envelope import Outbox, Parcel
from cutwater.spark.exchange.sink_rows import lane_of
from cutwater.spark.job.spec import Job, load_job, speaking
from cutwater.spark.operators.level import Inbox, work_epoch
from cutwater.spark.realtime.alignment import Alignment
from cutwater.spark.realtime.memory_store import LevelMemory
from cutwater.spark.realtime.opening import Opening
from cutwater.spark.realtime.positions import Position
from cutwater.spark.realtime.protocol import TICK_S
from cutwater.spark.realtime.side_outputs import AsideRow, store_aside
from cutwater.spark.realtime.wire import NOBODY, border_rows, parcels_in, tick_rows
from cutwater.spark.state.bucket import BucketStates
from cutwater.spark.stopping import StopRequest

__all__ = ["OperatorTask", "operator"]


def operator(
    job: bytes, opening: Opening, level: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What Spark runs for each partition of a level."""

    def operate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        with speaking():
            task = OperatorTask(load_job(job), opening, level, context.partitionId())
            yield from task.rows(batches)

    return operate


class OperatorTask:
    """The operator of one partition of a level during one batch of Spark's."""

    def __init__(self, job: Job, opening: Opening, level: int, partition: int) -> None:
        self._job, self._opening, self._level, self._partition = job, opening, level, partition
        self._is_last = level == opening.levels - 1
        self._snapshots = opening.snapshots.of(level, partition)
        start = opening.snapshots.common()
        self._snapshots.drop_after(start)  # rule 5
        self._memory = LevelMemory(self._snapshots.load())
        senders = opening.partitions if level else len(opening.sources)
        self._alignment = Alignment(senders, start)
        self._receivers = {
            label: bucket % opening.partitions for bucket, label in enumerate(job.labels)
        }
        self._told = self._stored = self._worked = start
        self._aside: list[AsideRow] = []
        self._rows = [0] * len(job.sink_names)
        self._last = [-1] * len(job.sink_names)
        self._latency_ms = 0
        self._position = Position(opening.released_position(partition)) if self._is_last else None
        self._request = StopRequest(opening.checkpoint)
        self._storing: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work on what comes, until the batch ends; then store where it ended (rule 7)."""
        for batch in batches:
            yield from self.take(batch)
        self.finish()

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take some rows; what becomes of the ticks that are whole with them."""
        columns = batch.to_pydict()
        rows = [
            row
            for row in zip(columns["sender"], columns["tick"], columns["body"], strict=True)
            if row[0] != NOBODY
        ]
        if not rows:
            return
        count = sum(self._alignment.receive(*row) for row in rows)
        yield from self._advance()
        if not count and self._is_asked_again({sender for sender, _, _ in rows}):
            yield from border_rows(self._partition, self._told, self._opening.partitions)

    def _is_asked_again(self, senders: Collection[int]) -> bool:
        """Does a reader that stops ask once more for a snapshot? One sender is heard, not all."""
        return not self._is_last and 0 in senders and self._request.is_made()

    def finish(self) -> None:
        """The batch is over: store what there is, as far as it is whole."""
        self._store(self._alignment.frontier, is_last=True)
        self.close()

    def close(self) -> None:
        """Let go of its thread and files."""
        self._thread.shutdown()
        if self._position is not None:
            self._position.close()

    def _advance(self) -> Iterator[pa.RecordBatch]:
        for tick, bodies in self._alignment.aligned():
            self._store_if_due(tick - 1)
            yield from self._work(tick, bodies)
        frontier = self._alignment.frontier
        self._store_if_due(frontier)
        if frontier > self._told:
            self._told = frontier
            if self._position is not None:
                self._tell(self._position)
            else:
                yield from border_rows(self._partition, frontier, self._opening.partitions)

    def _work(self, tick: int, bodies: list[bytes]) -> Iterator[pa.RecordBatch]:
        self._worked = tick
        by_bucket: dict[int, list[Parcel]] = {}
        for parcel in parcels_in(bodies):
            by_bucket.setdefault(parcel[0], []).append(parcel)
        sent: list[Parcel] = []
        with much_at_once():
            for label, parcels in sorted(by_bucket.items()):
                sent += self._work_on(label, parcels)
        if self._is_last:
            self._release(tick, sent)
        else:
            count = self._opening.partitions
            yield from tick_rows(self._partition, tick, sent, self._receivers, count)

    def _work_on(self, label: int, parcels: list[Parcel]) -> list[Parcel]:
        """What a bucket sends on in a tick."""
        if not self._job.levels:
            return parcels
        inbox = Inbox(self._job, self._level)
        passed = [parcel for parcel in parcels if inbox.take(*parcel[1:])]
        bucket = BucketStates(self._memory.store(label), self._job.query_id, self._level, label)
        outbox = Outbox(self._job.labels)
        return [*passed, *work_epoch(self._job, self._level, inbox, bucket, outbox, _no_origin)]

    def _release(self, tick: int, parcels: list[Parcel]) -> None:
        """Rows leave as soon as their tick is worked on: no snapshot is waited for (P2)."""
        by_sink: dict[int, dict[int, list[bytes]]] = {}
        for label, target, _kind, body in parcels:
            by_sink.setdefault(target, {}).setdefault(label, []).append(body)
        for target, found in sorted(by_sink.items()):
            name, record = self._job.sink_at(target), self._job.type_of_sink(target)
            sink = self._job.sinks[name]
            if sink.release == "commit":  # a side output, which leaves with a snapshot
                self._aside += [(target, label, b) for label, bs in found.items() for b in bs]
                continue
            lanes = [lane_of(self._job, target, label, b) for label, b in sorted(found.items())]
            sink.write(self._job.claim_of(name), tick, record, lanes)
            self._note(target, tick, sum(len(lane.orders) for lane in lanes))

    def _note(self, target: int, tick: int, rows: int) -> None:
        number = target - len(self._job.plan.segments)
        self._rows[number] += rows
        self._last[number] = tick
        self._latency_ms = round(1000 * (time.time() - self._opening.origin - tick * TICK_S))

    def _tell(self, position: Position) -> None:
        each = [number for pair in zip(self._rows, self._last, strict=True) for number in pair]
        position.tell(self._told, self._latency_ms, *each)

    # --- snapshots

    def _store_if_due(self, tick: int) -> None:
        """Store at the common ticks; if the last one is still being written, at a later one.

        A later one, not later: once a tick behind it is worked on, the state is not that of `due`.
        """
        due = tick - tick % self._opening.snapshot_ticks
        is_free = self._storing is None or self._storing.done()
        if due > self._stored and due >= self._worked and is_free:
            self._store(due)

    def _store(self, tick: int, *, is_last: bool = False) -> None:
        if self._storing is not None:
            self._storing.result()  # what failed there fails here
        if tick <= self._stored:
            return
        self._stored = tick
        changes, is_full = self._memory.snapshot()
        aside, self._aside = self._aside, []
        self._storing = self._thread.submit(self._write, tick, changes, is_full, aside)
        if is_last:
            self._storing.result()

    def _write(self, tick: int, changes: Any, is_full: bool, aside: list[AsideRow]) -> None:
        store_aside(self._snapshots.folder, tick, aside)
        self._snapshots.store(tick, changes, is_full=is_full)
        self._snapshots.drop_before(self._opening.snapshots.common())


def _no_origin(_job: Job, _order: bytes) -> str:
    """Where an event came from is told only by the log of the other engine."""
    return ""
