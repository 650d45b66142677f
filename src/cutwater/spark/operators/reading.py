"""The work of a source task: decodes chunks, runs the source's segment and sends its output.

Records are processed in runs, column by column; one by one only to find the record that fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from cutwater.codec import UNENCODABLE, codec_of
from cutwater.errors import InputError, Problem, RunError, StepError
from cutwater.ordering import NO_KEY, bucket_of, order_bytes
from cutwater.spark.connectors.base.side_outputs import bad_records_sink, late_events_sink
from cutwater.spark.connectors.base.source import BAD, BadRecord, Chunk, RawBatch, times_of
from cutwater.spark.connectors.base.watermarks import are_comparable, is_time, misplaced
from cutwater.spark.exchange.batch import EventBatch, joined, without_gc
from cutwater.spark.exchange.columns import Records
from cutwater.spark.exchange.envelope import (
    END,
    EVERYONE,
    WATERMARK,
    ShuffleRow,
    ShuffleWriter,
    pack_lines,
    pack_watermark,
    record_batches,
)
from cutwater.spark.exchange.router import Sender
from cutwater.spark.job.spec import Job

__all__ = [
    "ENOUGH_BYTES",
    "WORTH_SENDING",
    "Reading",
    "control_rows",
    "first_failure",
    "new_watermark",
]

WORTH_SENDING = 1_000
"""Fewer records are combined with the next run, so small files do not make small rows."""
ENOUGH_BYTES = 16 << 20
"""Records of more bytes are sent at once, however few: they fill an Arrow batch."""

_Waiting = tuple[Chunk, RawBatch, int]
"""A run of records of a chunk, and the number of its first record."""


class Reading:
    """Reads chunks, runs the source's segment on their records, and addresses its output."""

    def __init__(self, job: Job, source: str, epoch: int = 0) -> None:
        self.job = job
        self._source = source
        segment = job.topology.source_segment(source)
        assert segment.source is not None
        self._step = segment.source
        self._connector = job.connector_of(source)
        self._reader = self._connector.reader(self._step.type)
        self._shuffle = ShuffleWriter(job.addresses.labels, job.loops.input_epochs(epoch))
        self._sender = Sender(job, segment, self._shuffle)
        self._reader.numbered = self._sender.numbered
        self._is_timed = segment.number in job.requirements.times
        self._rank = job.addresses.source_ranks[source]
        self._tracker = job.watermark_tracker_of(source)
        self._keyless_label = job.addresses.keyless_label
        self._waiting: list[_Waiting] = []
        self._records_waiting = self._bytes_waiting = 0

    def read(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        """The output rows for a chunk, if there are enough to send."""
        first = chunk.first
        for raw_batch in self._reader.batches(chunk):
            self._waiting.append((chunk, raw_batch, first))
            self._records_waiting += len(raw_batch.raws)
            first += len(raw_batch.raws)
            if self._is_worth_sending(raw_batch):
                with without_gc():
                    rows = self._sent()
                yield from record_batches(rows)

    def _is_worth_sending(self, newest: RawBatch) -> bool:
        if self._records_waiting >= WORTH_SENDING:
            return True
        self._bytes_waiting += newest.size
        return self._bytes_waiting >= ENOUGH_BYTES

    def rows(self, chunks: Sequence[Chunk]) -> list[ShuffleRow]:
        """All output rows for some chunks."""
        for chunk in chunks:
            first = chunk.first
            for raw_batch in self._reader.batches(chunk):
                self._waiting.append((chunk, raw_batch, first))
                first += len(raw_batch.raws)
        with without_gc():
            return [*self._sent(), *self._shuffle.drain()]

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The output rows for the runs that still wait."""
        with without_gc():
            rows = [*self._sent(), *self._shuffle.drain()]
        yield from record_batches(rows)

    def _sent(self) -> list[ShuffleRow]:
        """The output rows for the waiting runs; run by run if something cannot be encoded."""
        waiting, self._waiting = self._waiting, []
        self._records_waiting = self._bytes_waiting = 0
        if self._try(waiting):
            return self._shuffle.ready()
        rows = []
        for each in waiting:
            if not self._try([each]):
                self._send_carefully(each)
            rows += self._shuffle.ready()
        return rows

    def _try(self, waiting: Sequence[_Waiting]) -> bool:
        """Send the output of some runs; False, and nothing sent, if it cannot be encoded."""
        try:
            batches = [self._batch(each, self._decoded(each)) for each in waiting]
            if batches:
                self._sender.through(joined(batches))
        except StepError as error:
            raise self._with_origin(waiting, error) from error.__cause__
        except UNENCODABLE:
            self._shuffle.drop()
            return False
        return True

    def _with_origin(self, waiting: Sequence[_Waiting], error: StepError) -> StepError:
        """The error with the origin of its record, found by processing records one by one."""
        sender = Sender(
            self.job,
            self.job.topology.source_segment(self._source),
            ShuffleWriter(self.job.addresses.labels),
        )
        for each in waiting:
            chunk, raw_batch, _ = each
            indices, values = self._in_time(chunk, raw_batch, *self._decoded(each))
            batch = self._batch(each, (indices, values))
            alone = [batch.take([row]) for row in range(len(batch))]
            found = first_failure(alone, sender.through)
            if found:
                row, failed = found
                return failed.came_from(
                    self._connector.location(chunk, raw_batch.positions[indices[row]])
                )
        return error

    def _send_carefully(self, each: _Waiting) -> None:
        """Send the output for the records that can be encoded; the others are bad records."""
        good = self._one_by_one(each, codec_of(self._step.type).encode)
        try:
            self._sender.through(self._batch(each, good))
        except UNENCODABLE as error:
            raise InputError(_cannot_be_sent(self._source, error)) from None

    def _batch(self, each: _Waiting, decoded: tuple[Sequence[int], Sequence[Any]]) -> EventBatch:
        """The records of a run, in the order of the epoch; late ones are left out."""
        chunk, raw_batch, first = each
        indices, values = decoded
        indices, values = self._in_time(chunk, raw_batch, indices, values)
        positions = raw_batch.positions
        if len(indices) < len(positions):
            positions = [positions[index] for index in indices]
        orders = []
        if self._sender.is_order_sensitive:
            before = order_bytes((self._rank, chunk.number))
            orders = [before + order for order in self._connector.sort_keys(positions)]
        times = (
            self._times(values, [first + index for index in indices]) if self._is_timed else None
        )
        return EventBatch(
            orders, [NO_KEY] * len(values), values, times=times, label=self._keyless_label
        )

    def _decoded(self, each: _Waiting) -> tuple[Sequence[int], Sequence[Any]]:
        """The indices and values of the good records of a run."""
        chunk, raw_batch, _ = each
        self._reader.enter(chunk)
        try:
            values = self._reader.decode(raw_batch)
            if self._have_places(chunk, values):
                return range(len(raw_batch.raws)), values
        except BAD:
            pass
        return self._one_by_one(each)

    def _have_places(self, chunk: Chunk, values: Sequence[Any]) -> bool:
        """Is the time of each record comparable with those of the source?"""
        if not self._step.time or not values:
            return True
        times = times_of(values, self._step.time)
        if not all(map(is_time, times)):
            return False
        reference = self._reference(chunk)
        try:  # `max` compares every time with another one
            return reference is None or are_comparable(max(times), reference)
        except TypeError:
            return False

    def _reference(self, chunk: Chunk) -> Any | None:
        """A time of the source with which all its times compare, if it has a watermark."""
        return self._tracker.reference(chunk.newest_after) if self._tracker else None

    def _one_by_one(
        self, each: _Waiting, check: Callable[[Any], Any] = lambda _value: None
    ) -> tuple[Sequence[int], Sequence[Any]]:
        """The same, record by record; one that `check` rejects is bad too."""
        chunk, raw_batch, _ = each
        self._reader.enter(chunk)
        reference = self._reference(chunk)
        indices: list[int] = []
        values: list[Any] = []
        for index, raw in enumerate(raw_batch.raws):
            try:
                value = self._reader.decode_one(raw)
                self._check_time(value, reference)
                check(value)
                values.append(value)
                indices.append(index)
            except (*BAD, *UNENCODABLE) as error:
                self._bad_record(
                    chunk, raw_batch.positions[index], self._reader.preview(raw), str(error)
                )
        return indices, values

    def _in_time(
        self, chunk: Chunk, raw_batch: RawBatch, indices: Sequence[int], values: Sequence[Any]
    ) -> tuple[Sequence[int], Sequence[Any]]:
        """The records that are not late, and their indices in the run."""
        completed = self._tracker.completed(chunk.newest_before) if self._tracker else None
        if self._tracker is None or completed is None:
            return indices, values
        are_late = self._tracker.are_late(values, completed)
        if not any(are_late):
            return indices, values
        for index, value, is_late in zip(indices, values, are_late, strict=True):
            if is_late:
                self._late(chunk, raw_batch.positions[index], raw_batch.raws[index], value)
        kept = [index for index, is_late in enumerate(are_late) if not is_late]
        in_time = values.take(kept) if isinstance(values, Records) else [values[i] for i in kept]
        return [indices[index] for index in kept], in_time

    def _times(self, values: Sequence[Any], numbers: list[int]) -> list[Any]:
        """The times of records: those of a field, else their numbers."""
        return times_of(values, self._step.time) if self._step.time else numbers

    def _check_time(self, value: Any, reference: Any | None) -> None:
        why = misplaced(getattr(value, self._step.time), reference) if self._step.time else ""
        if why:
            raise BadRecord(why)

    def _late(self, chunk: Chunk, position: Any, raw: Any, value: Any) -> None:
        """Leave a late event out and keep it, or its coordinates, or raise, as declared."""
        line = self._reader.json_line(raw, value)
        if self._step.late == "fail":
            raise RunError(
                Problem(
                    "late-event",
                    f"{self._connector.location(chunk, position)} is a late event of source "
                    f"'{self._source}': its time was complete when its epoch began; it is "
                    f"{_shown(line)}",
                    "allow a longer delay, or declare late='keep' or late='drop'",
                )
            )
        if self._step.late == "drop":
            line = json.dumps(self._connector.coordinates(chunk, position)).encode()
        self._to_side_output(late_events_sink(self._source), chunk, position, line)

    def _bad_record(self, chunk: Chunk, position: Any, text: bytes, error: str) -> None:
        if not self.job.skip_bad_records:
            raise InputError(
                Problem(
                    "bad-record",
                    f"{self._connector.location(chunk, position)} is not a record of source "
                    f"'{self._source}': {error}; it is {_shown(text)}",
                    "correct the input, or run with --on-bad-record skip, which counts such "
                    "records and writes them to a side output",
                )
            )
        record = {
            **self._connector.readable_coordinates(chunk, position),
            "error": error,
            "text": text.decode("utf-8", "replace"),
        }
        message = json.dumps(record).encode()
        self._to_side_output(bad_records_sink(self._source), chunk, position, message)

    def _to_side_output(self, sink: str, chunk: Chunk, position: Any, line: bytes) -> None:
        """Send a line to a side output, past the flow."""
        order = order_bytes((self._rank, chunk.number)) + self._connector.sort_keys([position])[0]
        label = self.job.addresses.labels[bucket_of(order, self.job.buckets)]
        batch = EventBatch([order], [NO_KEY], [line + b"\n"], label=label)
        self._shuffle.post(self.job.addresses.target_of_sink(sink), batch, pack_lines)


def first_failure(
    batches: Sequence[EventBatch], attempt: Callable[[EventBatch], None]
) -> tuple[int, StepError] | None:
    """The number of the first batch on which a function fails, and how; None: on none."""
    for number, batch in enumerate(batches):
        try:
            attempt(batch)
        except StepError as error:
            return number, error
    return None


def new_watermark(job: Job, source: str, chunks: Sequence[Chunk]) -> bytes | None:
    """The encoded watermark after these chunks; None if it is not new or not needed."""
    tracker = job.watermark_tracker_of(source)
    if tracker is None or source not in job.requirements.watermark_sources:
        return None
    before = tracker.completed(chunks[0].newest_before)
    after = tracker.completed(chunks[-1].newest_after)
    if after is None or (before is not None and after <= before):
        return None
    return job.codecs.watermark_codecs[source].encode(after)


def control_rows(
    job: Job, source: str, watermark: bytes | None, *, is_end: bool = False
) -> list[ShuffleRow]:
    """The watermark of a source and the end of its input, for all buckets."""
    found = [(WATERMARK, pack_watermark(source, watermark))] if watermark is not None else []
    if is_end and job.topology.levels:
        found.append((END, b""))
    return [(label, EVERYONE, kind, body) for kind, body in found for label in job.addresses.labels]


def _cannot_be_sent(source: str, error: Exception) -> Problem:
    return Problem(
        "cannot-be-sent",
        f"the output of a step after source '{source}' cannot be encoded: {error}",
        "integers have at most 64 bits; send larger ones as text",
    )


def _shown(text: bytes) -> str:
    return text[:200].decode("utf-8", "replace")
