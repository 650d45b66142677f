"""A folder of JSON-lines files as a Python data source with our own order.

Spark has no position for a line of text; here it is the number of the file and the byte offset,
which also gives the line number of a bad record. The segment behind the source runs here too,
so that lines never travel: what leaves is addressed to a bucket or a sink.
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
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from cutwater.spark.clock import Numbering, SourceClock, count_records
from cutwater.spark.filelog import Chunk, FileLog, split_at_lines
from cutwater.spark.idle import Patience, mark_to_follow
from cutwater.spark.job import Job, load_job, speaking
from cutwater.spark.line_work import LineWork
from cutwater.spark.rows import END, EVERYONE, MARK, ROW_SCHEMA, Parcel, pack_mark, record_batches

__all__ = [
    "SMALLEST_SHARE",
    "JsonLinesSource",
]

SMALLEST_SHARE = 64 << 10
"""A task reads at least so many bytes: less is not worth one."""


class JsonLinesSource(DataSource):
    """One source of a job; a class of its own is made for each, which carries the job."""

    job: bytes
    source: str
    now = staticmethod(time.time)
    """The wall clock by which a source is idle."""

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    @classmethod
    def of(cls, job: bytes, source: str, number: int) -> type[JsonLinesSource]:
        """The data source of one source of a job."""
        return type(f"cutwater_source_{number}", (cls,), {"job": job, "source": source})

    def schema(self) -> StructType:
        return ROW_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _Reader(self.job, self.source, self.now)


@dataclass
class _Part(InputPartition):
    chunks: list[Chunk]
    mark: bytes | None = None
    """What the source has completed with this epoch, encoded; None: nothing new."""
    is_end: bool = False
    """Does the input end here?"""


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans in one long-lived process; reads in the workers."""

    def __init__(self, job: bytes, source: str, now: Callable[[], float]) -> None:
        self._job = job
        self._source = source
        self._now = now
        self._log: FileLog | None = None
        self._began = now()
        self._until: list[str] | None = None

    def _open(self) -> tuple[Job, FileLog]:
        job = load_job(self._job)
        if self._log is None:
            folder = Path(job.lines_of(self._source).path)
            log = Path(job.checkpoint) / "sources" / self._source
            self._log = FileLog(folder, log, job.clock_of(self._source), self._now)
        return job, self._log

    def initialOffset(self) -> dict[str, Any]:
        return {"entry": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(load_job(self._job).lines_of(self._source).max_bytes_per_epoch)

    def prepareForTriggerAvailableNow(self) -> None:
        with speaking():
            self._until = self._open()[1].unread()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with speaking():
            job, log = self._open()
            if job.is_ending or start.get("end"):
                return {"entry": start["entry"], "end": True}
            if log.newest < start["entry"]:
                log.read(start["entry"])  # which says that it is missing
            if log.newest > start["entry"]:
                return {"entry": start["entry"] + 1}
            files = log.unread()
            if self._until is not None:
                files = [path for path in files if path in self._until]
            newest = log.extend(files, job.lines_of(self._source).max_bytes_per_epoch)
            if newest == start["entry"]:
                newest = self._follow(job, log)
            return {"entry": newest}

    def _follow(self, job: Job, log: FileLog) -> int:
        """With nothing to read: follow the others if that was so for long; the newest entry.

        A run that catches up does not wait, so what came before it counts.
        """
        limit = job.lines_of(self._source).idle_after
        patience = Patience(self._now, self._began if self._until is None else 0)
        if limit is None or not patience.is_over(limit, log.quiet_since()) or log.has_input():
            return log.newest
        mark = mark_to_follow(job, self._source, patience)
        return log.newest if mark is None else log.follow(mark)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        with speaking():
            job, log = self._open()
            entries = range(start["entry"] + 1, end["entry"] + 1)
            chunks = [chunk for number in entries for chunk in log.read(number)]
            parts = list(_shares(chunks, job.parallelism, job.clock_of(self._source)))
            if end.get("end") and not start.get("end"):
                parts.append(_Part([], is_end=job.source_ranks[self._source] == 0))
            elif chunks:
                parts = parts or [_Part([])]
                parts[-1].mark = _news(job, self._source, chunks)
            return list(parts)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        with speaking():
            work = LineWork(load_job(self._job), self._source)
            for chunk in partition.chunks:
                yield from work.read(chunk)
            yield from record_batches(_notices(work.job, self._source, partition))


def _news(job: Job, source: str, chunks: list[Chunk]) -> bytes | None:
    """What a source has completed by reading these chunks, if it is new and matters."""
    clock = job.clock_of(source)
    if clock is None or source not in job.needs.telling:
        return None
    before = clock.completed(chunks[0].newest_before)
    after = clock.completed(chunks[-1].newest_after)
    if after is None or (before is not None and after <= before):
        return None
    return job.mark_codecs[source].encode(after)


def _notices(job: Job, source: str, part: _Part) -> list[Parcel]:
    """What all buckets are told."""
    notices = [(MARK, pack_mark(source, part.mark))] if part.mark is not None else []
    if part.is_end and job.levels:
        notices.append((END, b""))
    return [(label, EVERYONE, kind, body) for kind, body in notices for label in job.labels]


def _shares(chunks: list[Chunk], count: int, clock: SourceClock | None) -> Iterator[_Part]:
    """The chunks in about `count` parts of equal size."""
    is_numbered = isinstance(clock, Numbering)
    size = max(sum(chunk.end - chunk.start for chunk in chunks) // count, SMALLEST_SHARE)
    share: list[Chunk] = []
    room = size
    for chunk in chunks:
        start, first = chunk.start, chunk.first
        while start < chunk.end:
            end = split_at_lines(chunk.path, start, chunk.end, room)
            share.append(replace(chunk, start=start, end=end, first=first))
            if is_numbered and end < chunk.end:
                first += count_records(chunk.path, start, end)
            room -= end - start
            start = end
            if room <= 0:
                yield _Part(share)
                share, room = [], size
    if share:
        yield _Part(share)
