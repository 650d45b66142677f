"""A level: all stateful segments of one depth in one Spark operator, one group per bucket.

Rows that are addressed to a deeper level or to a sink pass unchanged. A notice, of what a source
has completed or of the end of the input, is for every bucket of every level that heeds it: it is
taken after the epoch's data, and passed on. An epoch's border matters only to keys that the epoch
touched, so it comes to a bucket with its events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cutwater.spark.exchange.batch import much_at_once
from cutwater.spark.exchange.envelope import Outbox, row_of
from cutwater.spark.job.spec import load_job, speaking
from cutwater.spark.microbatch.origin import origin_of
from cutwater.spark.operators.level import Inbox, work_epoch
from cutwater.spark.state.bucket import BucketStates, StateStore

__all__ = ["Level"]


class Level(StatefulProcessor):
    """Sorts what each bucket was sent by its order, runs the segments on it, and sends it on."""

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
        with speaking():
            yield from self._work(int(key[0]), rows)

    def _work(self, label: int, rows: Iterator[Row]) -> Iterator[Row]:
        job = load_job(self._job)
        inbox = Inbox(job, self._level)
        for row in rows:
            if inbox.take(row.target, row.kind, row.body):
                yield row
        bucket = BucketStates(self._store, job.query_id, self._level, label)
        outbox = Outbox(job.labels)
        parcels = work_epoch(job, self._level, inbox, bucket, outbox, origin_of)
        while True:  # what a piece of the epoch caused leaves before the next is worked on
            with much_at_once():
                parcel = next(parcels, None)
            if parcel is None:
                return
            yield row_of(parcel)

    def close(self) -> None:
        pass
