"""A connector as a Spark Python data source, with our own order.

The segment after the source runs here too, so that raw records are never sent: every row is
addressed to a bucket or a sink.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from cutwater.spark.checkpoint.fencing import refuse_overtaken
from cutwater.spark.checkpoint.offset_log import ChunkLog
from cutwater.spark.checkpoint.power_loss import SparkFiles
from cutwater.spark.connectors.base.source import Chunk, RecordReader, SourceConnector
from cutwater.spark.connectors.base.watermarks import Numbering
from cutwater.spark.exchange.envelope import ROW_SCHEMA, record_batches
from cutwater.spark.job.error_boundary import error_boundary
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import load_job
from cutwater.spark.microbatch import epochs
from cutwater.spark.microbatch.idle import Patience, watermark_to_follow
from cutwater.spark.microbatch.loop_plan import planned
from cutwater.spark.operators.reading import Reading, control_rows, new_watermark
from cutwater.spark.stopping import StopRequest

__all__ = ["EpochDataSource", "shares"]


class EpochDataSource(DataSource):
    """One source of a job; a subclass per source carries the job."""

    job: bytes
    source: str
    now = staticmethod(time.time)
    """The wall clock for idle timeouts."""

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    @classmethod
    def of(cls, job: bytes, source: str, number: int) -> type[EpochDataSource]:
        """The data source of one source of a job."""
        return type(f"cutwater_source_{number}", (cls,), {"job": job, "source": source})

    def schema(self) -> StructType:
        return ROW_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _Reader(self.job, self.source, self.now)


@dataclass
class _Part(InputPartition):
    chunks: list[Chunk]
    watermark: bytes | None = None
    """The watermark of the source with this epoch, encoded; None: it has not moved."""
    is_end: bool = False
    """Does the input end here?"""


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans in one long-lived process; reads in the workers."""

    def __init__(self, job: bytes, source: str, now: Callable[[], float]) -> None:
        self._job = job
        self._source = source
        self._now = now
        self._log: ChunkLog | None = None
        self._files: SparkFiles | None = None
        self._began = now()
        self._is_catching_up = False

    def _open(self) -> tuple[Job, ChunkLog]:
        job = load_job(self._job)
        if self._log is None:
            connector, tp = (
                job.connector_of(self._source),
                job.topology.source_step(self._source).type,
            )
            log = Path(job.checkpoint) / "sources" / self._source
            tracker = job.watermark_tracker_of(self._source)
            self._log = ChunkLog(connector, tp, log, tracker, self._now, job.generation)
        return job, self._log

    def initialOffset(self) -> dict[str, Any]:
        return {"entry": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()  # a connector enforces its own limits

    def prepareForTriggerAvailableNow(self) -> None:
        with error_boundary():
            self._open()[1].freeze()
            self._is_catching_up = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with error_boundary():
            job, log = self._open()
            if self._is_stopped(job):
                return start
            if job.is_ending or start.get("end"):
                return {"entry": start["entry"], "end": True}
            if not planned(job).reads_input:
                return start  # the loop is full
            if log.newest < start["entry"]:
                log.read(start["entry"])  # raises: the entry is missing
            if log.newest > start["entry"]:
                return {"entry": start["entry"] + 1}
            refuse_overtaken(job)
            newest = log.extend()
            if newest == start["entry"]:
                newest = self._follow(job, log)
            return {"entry": newest}

    def _is_stopped(self, job: Job) -> bool:
        """Must planning stop? Not for the end of the input: it is one epoch, and is completed."""
        request = StopRequest(job.checkpoint)
        if job.is_ending or not request.is_made():
            return False
        request.see(self._source)
        return True

    def _follow(self, job: Job, log: ChunkLog) -> int:
        """With nothing to read: follow the others after the idle timeout; return the newest entry.

        A run that catches up does not wait, so quiet time before its start counts.
        """
        limit = job.sources[self._source].idle_after
        patience = Patience(self._now, 0 if self._is_catching_up else self._began)
        if limit is None or not patience.is_over(limit, log.quiet_since()) or log.has_input():
            return log.newest
        watermark = watermark_to_follow(job, self._source, patience)
        return log.newest if watermark is None else log.follow(watermark)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        with error_boundary():
            job, log = self._open()
            self._sync(job)
            entries = range(start["entry"] + 1, end["entry"] + 1)
            chunks = [chunk for number in entries for chunk in log.read(number)]
            parts = [_Part(share) for share in self._shares(job, chunks)]
            if end.get("end") and not start.get("end"):
                parts.append(_Part([], is_end=job.addresses.source_ranks[self._source] == 0))
            elif chunks:
                parts = parts or [_Part([])]
                parts[-1].watermark = new_watermark(job, self._source, chunks)
            return list(parts)

    def _sync(self, job: Job) -> None:
        """Sync the checkpoint, once per epoch: its offsets are written and no task has started."""
        if self._files is None:
            self._files = SparkFiles(Path(job.checkpoint), job.generation)
        if job.survives_power_loss:
            self._files.sync()

    def _shares(self, job: Job, chunks: list[Chunk]) -> Iterator[list[Chunk]]:
        connector = job.connector_of(self._source)
        is_numbered = isinstance(job.watermark_tracker_of(self._source), Numbering)
        reader = (
            connector.reader(job.topology.source_step(self._source).type) if is_numbered else None
        )
        return shares(connector, chunks, job.parallelism, reader)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        with error_boundary():
            job = load_job(self._job)
            if partition.chunks:
                epoch = epochs.epoch_of_task() if job.loops.logs else 0
                reading = Reading(job, self._source, epoch)
                for chunk in partition.chunks:
                    yield from reading.read(chunk)
                yield from reading.rest()
            yield from record_batches(
                control_rows(job, self._source, partition.watermark, is_end=partition.is_end)
            )


def shares(
    connector: SourceConnector, chunks: list[Chunk], count: int, reader: RecordReader | None = None
) -> Iterator[list[Chunk]]:
    """Split chunks into about `count` shares of equal weight; a reader numbers the parts."""
    chunks = [chunk for chunk in chunks if not chunk.is_decision]
    size = max(sum(map(connector.weight, chunks)) // count, connector.min_task_weight)
    share: list[Chunk] = []
    room = size
    for chunk in chunks:
        rest = chunk
        while not rest.is_decision:
            part = replace(rest, end=connector.cut(rest, room))
            share.append(part)
            room -= connector.weight(part)
            rest = replace(rest, start=part.end)
            if reader and not rest.is_decision:
                rest = replace(rest, first=part.first + reader.count(part))
            if room <= 0:
                yield share
                share, room = [], size
    if share:
        yield share
