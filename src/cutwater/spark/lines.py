"""A folder of JSON-lines files as a Python data source with our own order.

Spark has no position for a line of text; here it is the number of the file and the byte offset,
which also gives the line number of a bad record. The segment behind the source runs here too,
so that lines never travel: what leaves is addressed to a bucket or a sink.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from cutwater.errors import InputError, Problem, RunError
from cutwater.events import Data
from cutwater.order import NO_KEY, bucket_of, order_bytes
from cutwater.spark.clock import Numbering, SourceClock, count_records, lines_of, not_a_time
from cutwater.spark.filelog import Chunk, FileLog, split_at_lines
from cutwater.spark.filling import filler_of
from cutwater.spark.idle import Patience, mark_to_follow
from cutwater.spark.job import Job, load_job, speaking
from cutwater.spark.routing import sender
from cutwater.spark.rows import (
    END,
    EVERYONE,
    MARK,
    ROW_SCHEMA,
    Outbox,
    pack_mark,
    to_columns,
)

__all__ = [
    "ARROW_SCHEMA",
    "SMALLEST_SHARE",
    "JsonLinesSource",
    "bad_records_sink",
    "late_events_sink",
]

ARROW_SCHEMA = pa.schema(
    [("label", pa.int32()), ("target", pa.int32()), ("kind", pa.int8()), ("body", pa.binary())]
)


SMALLEST_SHARE = 64 << 10
"""A task reads at least so many bytes: less is not worth one."""


def bad_records_sink(source: str) -> str:
    """The name of the sink that keeps the bad records of a source."""
    return f"bad records: {source}"


def late_events_sink(source: str) -> str:
    """The name of the sink that keeps the late events of a source."""
    return f"late events: {source}"


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
            folder = Path(job.sources[self._source].path)
            log = Path(job.checkpoint) / "sources" / self._source
            self._log = FileLog(folder, log, job.clock_of(self._source), self._now)
        return job, self._log

    def initialOffset(self) -> dict[str, Any]:
        return {"entry": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(load_job(self._job).sources[self._source].max_bytes_per_epoch)

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
            newest = log.extend(files, job.sources[self._source].max_bytes_per_epoch)
            if newest == start["entry"]:
                newest = self._follow(job, log)
            return {"entry": newest}

    def _follow(self, job: Job, log: FileLog) -> int:
        """With nothing to read: follow the others if that was so for long; the newest entry.

        A run that catches up does not wait, so what came before it counts.
        """
        limit = job.sources[self._source].idle_after
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
            work = _Lines(load_job(self._job), self._source)
            for chunk in partition.chunks:
                yield from work.read(chunk)
            yield from work.rest()
            yield from _record_batches(_notices(work.job, self._source, partition))


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


def _notices(job: Job, source: str, part: _Part) -> list[tuple[int, int, int, bytes]]:
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


class _Lines:
    """Reads lines, runs the source's segment on them, and addresses what comes out."""

    def __init__(self, job: Job, source: str) -> None:
        self.job = job
        self._source = source
        self._segment = job.source_segment(source)
        self._outbox = Outbox()
        assert self._segment.source is not None
        self._step = self._segment.source
        self._decode = _decoder(self._step.type)
        self._is_timed = self._segment.number in job.needs.times
        self._rank = job.source_ranks[source]
        self._clock = job.clock_of(source)
        self._send = sender(job, self._segment, self._outbox)

    def read(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        chunk.check_unchanged()
        lines = lines_of(chunk.path, chunk.start, chunk.end)
        chunk.check_unchanged()
        clock = self._clock
        completed = clock.completed(chunk.newest_before) if clock else None
        operator = self._segment.operator
        file_order = order_bytes((self._rank, chunk.number))
        next_position = chunk.start
        number = chunk.first - 1
        is_timed, time = self._is_timed, None
        for index, line in enumerate(lines):
            position = next_position
            next_position += len(line) + 1
            if line and not line.isspace():
                number += 1
                try:
                    value = self._decode(line)
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                    self._bad_record(chunk, position, index, line, str(error))
                else:
                    if clock and clock.is_late(value, completed):
                        self._late(chunk, position, index, line)
                        continue
                    order = file_order + position.to_bytes(8, "big")
                    if is_timed:
                        time = self._time(value, number)
                    _, outputs = operator.step(operator.initial, Data(time, value))
                    self._send(order, NO_KEY, None, outputs)
        yield from _record_batches(self._outbox.take_closed())

    def rest(self) -> Iterator[pa.RecordBatch]:
        yield from _record_batches(list(self._outbox.take_all()))

    def _time(self, value: Any, number: int) -> Any:
        """The time of a record: that of its field, else its number."""
        if self._step.time is None:
            return number
        time = getattr(value, self._step.time)
        if not time <= time:
            raise InputError(not_a_time(self._step, time, "it is not <= itself"))
        return time

    def _late(self, chunk: Chunk, position: int, index: int, line: bytes) -> None:
        """Leave a late event out, as its source says: kept, noted by its place, or the end."""
        if self._step.late == "fail":
            line_number = _lines_before(chunk.path, chunk.start) + index + 1
            shown = line[:200].decode("utf-8", "replace")
            raise RunError(
                Problem(
                    "late-event",
                    f"{chunk.path}:{line_number} is a late event of source '{self._source}': its "
                    f"time was complete when its epoch began; the line is {shown}",
                    "allow a longer delay, or declare late='keep' or late='drop'",
                )
            )
        if self._step.late == "drop":
            line = json.dumps({"file": chunk.path, "byte": position}).encode()
        self._aside(late_events_sink(self._source), chunk, position, line)

    def _bad_record(self, chunk: Chunk, position: int, index: int, line: bytes, error: str) -> None:
        line_number = _lines_before(chunk.path, chunk.start) + index + 1
        if not self.job.skip_bad_records:
            shown = line[:200].decode("utf-8", "replace")
            raise InputError(
                Problem(
                    "bad-record",
                    f"{chunk.path}:{line_number} is no record of source '{self._source}': "
                    f"{error}; the line is {shown}",
                    "correct the file, or run with --on-bad-record skip, which counts such "
                    "records and keeps them aside",
                )
            )
        record = {
            "file": chunk.path,
            "line": line_number,
            "error": error,
            "text": line.decode("utf-8", "replace"),
        }
        self._aside(bad_records_sink(self._source), chunk, position, json.dumps(record).encode())

    def _aside(self, sink: str, chunk: Chunk, position: int, line: bytes) -> None:
        """Send a line to a sink of its own, past the flow."""
        order = order_bytes((self._rank, chunk.number, position))
        label = self.job.labels[bucket_of(order, self.job.buckets)]
        entry = (order, NO_KEY, None, line.rstrip() + b"\n")
        self._outbox.add(label, self.job.target_of_sink(sink), entry)


def _decoder(tp: Any) -> Callable[[bytes], Any]:
    """Reads a record of a type from a line."""
    decode, fill = msgspec.json.Decoder(tp).decode, filler_of(tp)
    if fill is None:
        return decode

    def read(line: bytes) -> Any:
        value = decode(line)
        fill(value)
        return value

    return read


@lru_cache(maxsize=8)
def _lines_before(path: str, position: int) -> int:
    """How many lines end before a position; counted once, however many records are bad."""
    with Path(path).open("rb") as file:
        return file.read(position).count(b"\n")


def _record_batches(rows: list[tuple[int, int, int, bytes]]) -> Iterator[pa.RecordBatch]:
    if rows:
        columns = zip(to_columns(rows), ARROW_SCHEMA.types, strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in columns], schema=ARROW_SCHEMA
        )
