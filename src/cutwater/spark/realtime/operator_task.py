"""An operator: processes ticks that are aligned, releases them, and stores snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa

from cutwater.spark.connectors.base.sink import BucketRows
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.exchange.batch import without_gc
from cutwater.spark.exchange.envelope import ShuffleRow, ShuffleWriter
from cutwater.spark.exchange.sink_rows import bucket_rows
from cutwater.spark.job.error_boundary import error_boundary
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import load_job
from cutwater.spark.operators.level import BucketInput, work_epoch
from cutwater.spark.operators.origin import input_at
from cutwater.spark.realtime.alignment import Alignment
from cutwater.spark.realtime.digests import DigestLog, digest_of
from cutwater.spark.realtime.memory_store import LevelMemory
from cutwater.spark.realtime.opening import Opening
from cutwater.spark.realtime.plan_log import read_plan
from cutwater.spark.realtime.positions import PositionFile
from cutwater.spark.realtime.side_outputs import SideOutputRow, store_side_outputs
from cutwater.spark.realtime.snapshots import Changes
from cutwater.spark.realtime.wire import NO_SENDER, barrier_rows, tick_rows, unpack_rows
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
        with error_boundary(), opening.noting_failure():
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
        self._memory = LevelMemory(self._snapshots.load(), len(self._snapshots.needed()))
        senders = opening.partitions if level else opening.senders
        self._alignment = Alignment(senders, start)
        self._receivers = opening.receivers(job.addresses.labels)
        self._reported = self._stored = self._tried = self._worked = start
        self._failures = 0
        self._side_outputs: list[SideOutputRow] = []
        self._rows = [0] * len(job.addresses.sink_names)
        self._last = [-1] * len(job.addresses.sink_names)
        self._latency_ms = 0
        self._position = (
            PositionFile(opening.released_position(partition)) if self._is_last else None
        )
        self._digests = DigestLog(opening.digest_path(level, partition), start)
        self._snapshot_position = PositionFile(opening.snapshot_position(level, partition))
        self._request = StopRequest(opening.checkpoint)
        if self._position is not None:
            self._report(self._position)  # overwrite the position of the previous batch
        self._storing: Future[_Outcome] | None = None
        self._thread = ThreadPoolExecutor(1)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process rows until the batch ends; then store a snapshot of where it ended (rule 7)."""
        try:
            for batch in batches:
                yield from self.accept(batch)
            self.finish()
        finally:
            self.close()

    def accept(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Accept rows; yields the output of the ticks that they complete."""
        columns = batch.to_pydict()
        rows = [
            row
            for row in zip(columns["sender"], columns["tick"], columns["body"], strict=True)
            if row[0] != NO_SENDER
        ]
        if not rows:
            return
        count = sum(self._alignment.receive(*row) for row in rows)
        yield from self._advance()
        if not count and self._is_barrier_requested({sender for sender, _, _ in rows}):
            yield from barrier_rows(self._partition, self._reported, self._opening.partitions)

    def _is_barrier_requested(self, senders: Collection[int]) -> bool:
        """Does a stopping reader ask again for a snapshot? Only one sender counts, not all."""
        return not self._is_last and 0 in senders and self._request.is_made()

    def finish(self) -> None:
        """The batch is over: store the state up to the last complete tick."""
        self._store_last(self._alignment.frontier)

    def close(self) -> None:
        """Release its thread and files."""
        self._thread.shutdown()
        self._snapshot_position.close()
        self._digests.close()
        if self._position is not None:
            self._position.close()

    def _advance(self) -> Iterator[pa.RecordBatch]:
        for tick, bodies in self._alignment.aligned():
            self._digests.pass_over(tick - 1)
            self._store_if_due(tick - 1)
            yield from self._run_tick(tick, bodies)
        frontier = self._alignment.frontier
        self._digests.pass_over(frontier)
        self._store_if_due(frontier)
        if frontier > self._reported:
            self._reported = frontier
            if self._position is not None:
                self._report(self._position)
            elif frontier > self._worked:  # else the rows of that tick say so
                yield from barrier_rows(self._partition, frontier, self._opening.partitions)

    def _run_tick(self, tick: int, bodies: list[bytes]) -> Iterator[pa.RecordBatch]:
        self._worked = tick
        by_bucket: dict[int, list[ShuffleRow]] = {}
        for row in unpack_rows(bodies):
            by_bucket.setdefault(row[0], []).append(row)
        sent: list[ShuffleRow] = []
        with without_gc():
            for label, rows in sorted(by_bucket.items()):
                sent += self._run_bucket(label, rows)
        if self._is_last:
            self._release(tick, sent)
        else:
            count = self._opening.partitions
            yield from tick_rows(self._partition, tick, sent, self._receivers, count)

    def _run_bucket(self, label: int, rows: list[ShuffleRow]) -> list[ShuffleRow]:
        """The output of a bucket in a tick."""
        if not self._job.topology.levels:
            return rows
        received = BucketInput(self._job.topology, self._level)
        passed = [row for row in rows if received.accept(*row[1:])]
        bucket = BucketStates(self._memory.store(label), self._job.query_id, self._level, label)
        shuffle = ShuffleWriter(self._job.addresses.labels)
        sent = work_epoch(self._job, self._level, received, bucket, shuffle, self._origin_of)
        return [*passed, *sent]

    def _origin_of(self, job: Job, order: bytes) -> str:
        """The input at an order: the plans say what was read, those of replayed ticks included."""
        return input_at(job, order, self._chunk_of)

    def _chunk_of(self, source: str, number: int) -> Chunk | None:
        """The newest chunk of a file or a partition, in the plan of its source."""
        plan = read_plan(self._opening.plan_path(source))
        chunks = [*plan.base, *(chunk for planned in plan.ticks for chunk in planned.chunks)]
        found = [c for c in chunks if c.number == number and not c.is_decision]
        return found[-1] if found else None

    def _release(self, tick: int, rows: list[ShuffleRow]) -> None:
        """Release rows as soon as their tick is processed, without waiting for a snapshot (P2)."""
        by_sink: dict[int, dict[int, list[bytes]]] = {}
        for label, target, _kind, body in rows:
            by_sink.setdefault(target, {}).setdefault(label, []).append(body)
        buckets = {
            target: self._buckets(target, found) for target, found in sorted(by_sink.items())
        }
        digest = digest_of(
            (self._job.addresses.sink_at(target), found) for target, found in buckets.items()
        )
        self._digests.compare(tick, digest)
        for target, found in buckets.items():
            name, record = (
                self._job.addresses.sink_at(target),
                self._job.addresses.type_of_sink(target),
            )
            if not self._is_side_output(target):
                self._job.sinks[name].write(self._job.claim_of(name), tick, record, found)
            self._note(target, tick, sum(len(bucket.orders) for bucket in found))
        self._digests.note(tick, digest)

    def _buckets(self, target: int, found: dict[int, list[bytes]]) -> list[BucketRows]:
        if self._is_side_output(target):  # before `bucket_rows`, which empties the lists
            self._side_outputs += [(target, label, b) for label, bs in found.items() for b in bs]
        return [bucket_rows(self._job, target, label, b) for label, b in sorted(found.items())]

    def _is_side_output(self, target: int) -> bool:
        """Is it a side output, which is released with a snapshot?"""
        return self._job.sinks[self._job.addresses.sink_at(target)].release == "commit"

    def _note(self, target: int, tick: int, rows: int) -> None:
        number = target - len(self._job.plan.segments)
        self._rows[number] += rows
        self._last[number] = tick
        self._latency_ms = round(1000 * (time.time() - self._opening.time_of(tick)))

    def _report(self, position: PositionFile) -> None:
        each = [number for pair in zip(self._rows, self._last, strict=True) for number in pair]
        position.write(self._reported, self._latency_ms, *each)

    # --- snapshots

    def _store_if_due(self, tick: int) -> None:
        """Store at the common ticks; if the last snapshot is still being written, at the next one.

        It cannot be delayed: once a later tick is processed, the state is no longer that of `due`.
        """
        due = tick - tick % self._opening.snapshot_ticks
        is_free = self._storing is None or self._storing.done()
        if due > self._tried and due >= self._worked and is_free:
            self._store(due)

    def _store(self, tick: int) -> None:
        self._settle()
        self._tried = tick
        changes, is_full = self._memory.snapshot()
        side_outputs, self._side_outputs = self._side_outputs, []
        write = partial(self._write, tick, self._stored, changes, is_full, side_outputs)
        self._storing = self._thread.submit(_outcome, tick, side_outputs, write)

    def _store_last(self, tick: int) -> None:
        """The batch is over and there is no retry, so a failure is raised."""
        self._settle()
        if tick > self._stored:
            self._store(tick)
            self._settle(is_last=True)

    def _settle(self, *, is_last: bool = False) -> None:
        """Record the outcome of the last snapshot; no row waits for one that failed (P2).

        The next one is full. Until then a start replays more, and the plan grows.
        """
        if self._storing is None:
            return
        tick, side_outputs, error = self._storing.result()
        self._storing = None
        if error is None:
            self._stored = tick
        elif is_last:
            raise error
        else:
            self._failures += 1
            self._side_outputs = [*side_outputs, *self._side_outputs]
            self._memory.store_all_next()
        self._snapshot_position.write(
            self._stored, self._failures, (error.errno or 0) if error else 0
        )

    def _write(
        self,
        tick: int,
        before: int,
        changes: Changes,
        is_full: bool,
        side_outputs: list[SideOutputRow],
    ) -> None:
        self._snapshots.drop_after(before)  # leftovers of a failed snapshot
        # Side outputs come first: a snapshot that counts without their rows would lose them.
        store_side_outputs(self._snapshots.folder, tick, side_outputs)
        self._snapshots.store(tick, changes, is_full=is_full)
        self._snapshots.drop_before(self._opening.snapshots.common())


_Outcome = tuple[int, list[SideOutputRow], OSError | None]
"""The outcome of a snapshot: its tick, the rows released with it, and why it failed."""


def _outcome(tick: int, side_outputs: list[SideOutputRow], write: Callable[[], None]) -> _Outcome:
    """The outcome of a snapshot; only errors of the operating system may be retried."""
    try:
        write()
    except OSError as error:
        return tick, side_outputs, error
    return tick, side_outputs, None
