"""A level: all stateful segments of one depth in one Spark operator, one group per bucket.

Rows for a deeper level or for a sink pass through unchanged. A control row carries a watermark or
the end of the input to every bucket of every level that needs it: it is applied after the epoch's
data and passed on. An epoch's barrier matters only to keys that the epoch touched, so it reaches a
bucket with its events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cutwater.spark.exchange.batch import without_gc
from cutwater.spark.exchange.envelope import ShuffleWriter, spark_row
from cutwater.spark.job.error_boundary import error_boundary
from cutwater.spark.job.transport import load_job
from cutwater.spark.microbatch import epochs
from cutwater.spark.microbatch.origin import origin_of
from cutwater.spark.operators.level import BucketInput, work_epoch
from cutwater.spark.state.bucket import BucketStates, StateStore

__all__ = ["Level"]


class Level(StatefulProcessor):
    """Sorts the rows of each bucket by order, runs the segments on them, and sends the results."""

    def __init__(self, job: bytes, level: int) -> None:
        self._job = job
        self._level = level

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._store = StateStore(handle)

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,
    ) -> Iterator[Row]:
        with error_boundary():
            yield from self._work(int(key[0]), rows)

    def _work(self, label: int, rows: Iterator[Row]) -> Iterator[Row]:
        job = load_job(self._job)
        received = BucketInput(job.topology, self._level)
        for row in rows:
            if received.accept(row.target, row.kind, row.body):
                yield row
        bucket = BucketStates(self._store, job.query_id, self._level, label)
        inputs = job.loops.input_epochs(epochs.epoch_of_task()) if job.loops.logs else None
        shuffle = ShuffleWriter(job.addresses.labels, inputs)
        sent = work_epoch(job, self._level, received, bucket, shuffle, origin_of)
        while True:  # send the output of one piece before processing the next
            with without_gc():
                out = next(sent, None)
            if out is None:
                return
            yield spark_row(out)

    def close(self) -> None:
        pass
