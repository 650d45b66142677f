"""The work of a task that reads: lines become records, and what its segment makes of them is sent.

Lines are worked on in runs, column by column; only what goes wrong is looked at one by one.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, compress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from cutwater.errors import InputError, Problem, RunError
from cutwater.order import NO_KEY, bucket_of, order_bytes
from cutwater.spark.batches import Batch, much_at_once
from cutwater.spark.clock import lines_of, not_a_time
from cutwater.spark.filelog import Chunk
from cutwater.spark.filling import filler_of
from cutwater.spark.job import Job
from cutwater.spark.routing import Sender
from cutwater.spark.rows import Outbox, pack_lines, record_batches

__all__ = ["RUN_BYTES", "LineWork", "bad_records_sink", "late_events_sink"]

RUN_BYTES = 4 << 20
"""About so many bytes of lines are decoded and sent together."""

_BAD = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What is raised for a line that is no record."""


def bad_records_sink(source: str) -> str:
    """The name of the sink that keeps the bad records of a source."""
    return f"bad records: {source}"


def late_events_sink(source: str) -> str:
    """The name of the sink that keeps the late events of a source."""
    return f"late events: {source}"


@dataclass
class _Lines:
    """Some lines of a chunk."""

    chunk: Chunk
    texts: list[bytes]
    positions: list[int]
    """Where each line begins in the file."""
    numbers: Sequence[int]
    """The number of each line among those that are not blank, of all the source."""

    def part(self, start: int, end: int) -> _Lines:
        columns = (self.texts, self.positions, self.numbers)
        return _Lines(self.chunk, *(column[start:end] for column in columns))  # type: ignore[arg-type]

    def where(self, mask: Sequence[bool]) -> _Lines:
        columns = (self.texts, self.positions, self.numbers)
        return _Lines(self.chunk, *(list(compress(column, mask)) for column in columns))  # type: ignore[arg-type]

    def runs(self) -> Iterator[_Lines]:
        """All lines, some at a time."""
        start = 0
        while start < len(self.texts):
            end = bisect_left(self.positions, self.positions[start] + RUN_BYTES, lo=start + 1)
            yield self.part(start, end)
            start = end


def _read(chunk: Chunk) -> _Lines:
    chunk.check_unchanged()
    texts = lines_of(chunk.path, chunk.start, chunk.end)
    chunk.check_unchanged()
    positions = list(accumulate((len(text) + 1 for text in texts), initial=chunk.start))[:-1]
    is_full = [bool(text) and not text.isspace() for text in texts]
    lines = _Lines(chunk, texts, positions, positions).where(is_full)
    lines.numbers = range(chunk.first, chunk.first + len(lines.texts))
    return lines


class LineWork:
    """Reads lines, runs the source's segment on them, and addresses what comes out."""

    def __init__(self, job: Job, source: str) -> None:
        self.job = job
        self._source = source
        segment = job.source_segment(source)
        assert segment.source is not None
        self._step = segment.source
        self._outbox = Outbox(job.labels)
        self._sender = Sender(job, segment, self._outbox)
        self._decode = _decoder(self._step.type)
        self._is_timed = segment.number in job.needs.times
        self._rank = job.source_ranks[source]
        self._clock = job.clock_of(source)
        self._home = job.labels[bucket_of(NO_KEY, job.buckets)]

    def read(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        """The rows that the lines of a chunk become."""
        for lines in _read(chunk).runs():
            with much_at_once():
                self._send(lines)
            yield from record_batches(self._outbox.take())

    def _send(self, lines: _Lines) -> None:
        lines, values = self._in_time(*self._decoded(lines))
        times = list(map(self._time, values, lines.numbers)) if self._is_timed else None
        before = order_bytes((self._rank, lines.chunk.number))
        orders = [before + position.to_bytes(8, "big") for position in lines.positions]
        batch = Batch(orders, [NO_KEY] * len(values), values, times=times, label=self._home)
        self._sender.through(batch)

    def _decoded(self, lines: _Lines) -> tuple[_Lines, list[Any]]:
        """The records, and the lines that are no bad ones."""
        try:
            return lines, list(map(self._decode, lines.texts))
        except _BAD:
            pass
        values: list[Any] = []
        is_good = []
        for text, position in zip(lines.texts, lines.positions, strict=True):
            try:
                values.append(self._decode(text))
                is_good.append(True)
            except _BAD as error:
                self._bad_record(lines.chunk, position, text, str(error))
                is_good.append(False)
        return lines.where(is_good), values

    def _in_time(self, lines: _Lines, values: list[Any]) -> tuple[_Lines, list[Any]]:
        """The lines and records that are not late."""
        clock = self._clock
        completed = clock.completed(lines.chunk.newest_before) if clock else None
        if clock is None or completed is None:
            return lines, values
        is_good = [not clock.is_late(value, completed) for value in values]
        if all(is_good):
            return lines, values
        late = lines.where([not good for good in is_good])
        for text, position in zip(late.texts, late.positions, strict=True):
            self._late(lines.chunk, position, text)
        return lines.where(is_good), list(compress(values, is_good))

    def _time(self, value: Any, number: int) -> Any:
        """The time of a record: that of its field, else its number."""
        if self._step.time is None:
            return number
        time = getattr(value, self._step.time)
        if not time <= time:
            raise InputError(not_a_time(self._step, time, "it is not <= itself"))
        return time

    def _late(self, chunk: Chunk, position: int, text: bytes) -> None:
        """Leave a late event out, as its source says: kept, noted by its place, or the end."""
        if self._step.late == "fail":
            raise RunError(
                Problem(
                    "late-event",
                    f"{_place(chunk, position)} is a late event of source '{self._source}': its "
                    f"time was complete when its epoch began; the line is {_shown(text)}",
                    "allow a longer delay, or declare late='keep' or late='drop'",
                )
            )
        if self._step.late == "drop":
            text = json.dumps({"file": chunk.path, "byte": position}).encode()
        self._aside(late_events_sink(self._source), chunk, position, text)

    def _bad_record(self, chunk: Chunk, position: int, text: bytes, error: str) -> None:
        if not self.job.skip_bad_records:
            raise InputError(
                Problem(
                    "bad-record",
                    f"{_place(chunk, position)} is no record of source '{self._source}': "
                    f"{error}; the line is {_shown(text)}",
                    "correct the file, or run with --on-bad-record skip, which counts such "
                    "records and keeps them aside",
                )
            )
        record = {
            "file": chunk.path,
            "line": _line_number(chunk, position),
            "error": error,
            "text": text.decode("utf-8", "replace"),
        }
        said = json.dumps(record).encode()
        self._aside(bad_records_sink(self._source), chunk, position, said)

    def _aside(self, sink: str, chunk: Chunk, position: int, text: bytes) -> None:
        """Send a line to a sink of its own, past the flow."""
        order = order_bytes((self._rank, chunk.number, position))
        label = self.job.labels[bucket_of(order, self.job.buckets)]
        line = Batch([order], [NO_KEY], [text.rstrip() + b"\n"], label=label)
        self._outbox.post(self.job.target_of_sink(sink), line, pack_lines)


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


def _shown(text: bytes) -> str:
    return text[:200].decode("utf-8", "replace")


def _place(chunk: Chunk, position: int) -> str:
    return f"{chunk.path}:{_line_number(chunk, position)}"


def _line_number(chunk: Chunk, position: int) -> int:
    return bisect_left(_line_starts(chunk.path, chunk.end), position) + 1


@lru_cache(maxsize=8)
def _line_starts(path: str, end: int) -> list[int]:
    """Where the lines of a file begin; worked out once, however many records are bad."""
    with Path(path).open("rb") as file:
        lines = file.read(end).split(b"\n")
    return list(accumulate((len(line) + 1 for line in lines), initial=0))
