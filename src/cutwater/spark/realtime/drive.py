"""Starting the query of a real-time run, watching it, and starting it again when a task dies."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cutwater.spark.job.spec import Job
from cutwater.spark.realtime.opening import Opening, open_generation
from cutwater.spark.realtime.operator_task import operator
from cutwater.spark.realtime.positions import read_position
from cutwater.spark.realtime.protocol import TICK_S
from cutwater.spark.realtime.reader_task import reader
from cutwater.spark.realtime.wire import SCHEMA
from cutwater.spark.stopping import StopRequest

__all__ = ["SETTINGS", "RealTimeDrive", "build_query", "slots_of"]

SETTINGS = {
    # Our operators are Python, which the list of what is known to be quick does not have.
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    "spark.python.udf.pipelined.enabled": "true",
    # A row is sent when it is there, not when a batch or a buffer is full.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.pandas.udf.buffer.size": "64",
    "spark.shuffle.streaming.networkBufferSize": "64",
}
"""What a session for real-time runs has besides the usual."""


def slots_of(job: Job, partitions: int) -> int:
    """How many tasks run at once: all readers, and all partitions of all levels."""
    return len(job.sources) + max(len(job.levels), 1) * partitions


def _open_source(spark: SparkSession, partitions: int) -> DataFrame:
    """A stream without rows that keeps a batch open: what is read, readers read themselves."""
    jvm = spark._jvm
    assert jvm is not None
    sources = jvm.org.apache.spark.sql.execution.streaming.sources
    companion = getattr(getattr(sources, "LowLatencyMemoryStream$"), "MODULE$")
    strings = jvm.org.apache.spark.sql.Encoders.STRING()
    return DataFrame(companion.apply(spark._jsparkSession, partitions, strings).toDF(), spark)


def build_query(
    spark: SparkSession, job: Job, opening: Opening, *, is_catching_up: bool
) -> DataFrame:
    """Readers, then an exchange and an operator for each level."""
    data = job.to_bytes()
    read = reader(data, opening, is_catching_up=is_catching_up)
    rows = _open_source(spark, len(opening.sources)).mapInArrow(read, SCHEMA)
    for level in range(opening.levels):
        sent = rows.repartitionById(opening.partitions, "receiver")
        rows = sent.mapInArrow(operator(data, opening, level), SCHEMA)
    return rows


class RealTimeDrive:
    """A run whose sinks are claimed and whose query can start."""

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        *,
        partitions: int,
        snapshot_s: float,
        batch_s: int,
        is_to_stop: Callable[[], bool],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._spark, self._job, self._partitions = spark, job, partitions
        self._snapshot_ticks = max(1, round(snapshot_s / TICK_S))
        self._batch_s = batch_s
        self._is_to_stop = is_to_stop
        self._now = now
        self._request = StopRequest(job.checkpoint)
        self.is_stopped = False

    def run(self, until: str) -> None:
        """Run the query until all is read, or until the run is to stop."""
        opening = open_generation(
            self._job,
            partitions=self._partitions,
            snapshot_ticks=self._snapshot_ticks,
            tick_s=TICK_S,
            now=self._now(),
        )
        query = self._start(opening, until)
        try:
            self._watch(query, opening, until)
        finally:
            if query.isActive:
                query.stop()
            self._request.withdraw()

    def _start(self, opening: Opening, until: str) -> StreamingQuery:
        rows = build_query(self._spark, self._job, opening, is_catching_up=until == "caught-up")
        writer = rows.writeStream.format("noop").outputMode("update")
        # Spark's own checkpoint of such a query says nothing: ours is the truth.
        writer = writer.option("checkpointLocation", str(opening.folder / "spark"))
        writer = writer.option("asyncProgressTrackingEnabled", "false")
        writer = writer.trigger(realTime=f"{self._batch_s} seconds")  # type: ignore[call-overload]
        return cast(StreamingQuery, writer.start())

    def _watch(self, query: StreamingQuery, opening: Opening, until: str) -> None:
        asked = False
        while not query.awaitTermination(0.05):  # type: ignore[arg-type]
            if not asked and (self._is_to_stop() or self._is_done(opening, until)):
                self.is_stopped = not self._is_done(opening, until)
                self._request.make()
                asked = True
            if asked and self._has_ended(opening):
                return

    def _is_done(self, opening: Opening, until: str) -> bool:
        if until != "caught-up":
            return False
        told = [
            read_position(opening.reader_position(number)) for number in range(len(opening.sources))
        ]
        return all(flag for _, flag in told) and opening.released() >= opening.planned()

    def _has_ended(self, opening: Opening) -> bool:
        """Have all readers stopped, and is there a snapshot of all that they sent?"""
        is_seen = self._request.is_seen_by(opening.sources)
        return is_seen and opening.snapshots.common() >= opening.planned()
