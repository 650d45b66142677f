"""Filters late events of DataFrames whose source has a watermark.

Our own readers know the newest time of a source before an epoch begins, but not that of a
DataFrame. So its rows first pass through another operator, spread over the buckets. Each reading
task sends every bucket the newest time it saw, so all buckets know the same newest time at the end
of an epoch, filter by it in the next one, and the first bucket sends the watermark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any

import msgspec
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from cutwater.codec import codec_of
from cutwater.errors import InputError, Problem, RunError
from cutwater.flow.state_snapshots import time_kept_as
from cutwater.ordering import NO_KEY
from cutwater.spark.connectors.base.side_outputs import late_events_sink
from cutwater.spark.connectors.base.watermarks import not_a_time
from cutwater.spark.exchange.batch import EventBatch, without_gc
from cutwater.spark.exchange.columns import Records, record_codec
from cutwater.spark.exchange.envelope import (
    DATA,
    EVERYONE,
    NEWEST,
    WATERMARK,
    ShuffleRow,
    ShuffleWriter,
    pack_lines,
    pack_watermark,
    spark_row,
)
from cutwater.spark.exchange.router import Sender
from cutwater.spark.exchange.sink_rows import lines_of_values
from cutwater.spark.job.error_boundary import error_boundary
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import load_job

__all__ = ["LateFilter", "LateFilteredSource"]

_STATE = StructType([StructField("newest", BinaryType())])
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(tuple[list[bytes], bytes]).decode
_unpack_newest = msgspec.msgpack.Decoder(dict[str, bytes]).decode


class LateFilteredSource:
    """A source with a late filter: how its rows are written, read and judged."""

    def __init__(self, job: Job, source: str) -> None:
        self._job = job
        self._source = source
        self.target = job.addresses.late_filter_of(source)
        self._step = job.topology.source_step(source)
        self._segment = job.topology.source_segment(source)
        self._records = record_codec(self._step.type)
        self.time = codec_of(time_kept_as(self._segment.output.time))
        """How the newest time is encoded."""
        self._keyless_label = job.addresses.keyless_label

    # --- before the late filter -------------------------------------------------------------------

    def pack(self, batch: EventBatch) -> bytes:
        """Rows as a body."""
        assert isinstance(batch.values, Records)
        return _pack((batch.orders, self._records.encode(batch.values)))

    def newest_of(self, values: Records, before: Any | None) -> Any | None:
        """The newest time among records and an earlier one."""
        newest = before
        for time in self._times(values):
            if newest is None or newest <= time:
                newest = time
        return newest

    def control_rows(self, newest: Any | None) -> list[ShuffleRow]:
        """The newest time, as sent to every bucket."""
        if newest is None:
            return []
        body = self.time.encode(newest)
        return [(label, self.target, NEWEST, body) for label in self._job.addresses.labels]

    # --- in the late filter -----------------------------------------------------------------------

    def send(self, bodies: Sequence[bytes], newest: Any | None, shuffle: ShuffleWriter) -> None:
        """Forward the rows that are not late, by the watermark at the start of the epoch."""
        sender = Sender(self._job, self._segment, shuffle)
        is_timed = self._segment.number in self._job.requirements.times
        for body in bodies:
            batch = self._in_time(*self._read(body), newest, shuffle)
            batch.times = batch.times if is_timed else None
            sender.through(batch)

    def completed(self, newest: Any | None) -> Any | None:
        """The watermark for this newest time; None: no time is complete."""
        rule = self._step.watermark
        return None if newest is None or rule is None else rule.watermark(newest)

    def _read(self, body: bytes) -> tuple[list[bytes], Records]:
        orders, values = _unpack(body)
        return orders, self._records.decode(values)

    def _in_time(
        self, orders: list[bytes], values: Records, newest: Any | None, shuffle: ShuffleWriter
    ) -> EventBatch:
        times = self._times(values)
        batch = EventBatch(
            orders, [NO_KEY] * len(orders), values, times=times, label=self._keyless_label
        )
        completed = self.completed(newest)
        if completed is None:
            return batch
        is_late = [bool(time <= completed) for time in times]
        if any(is_late):
            self._to_side_output(batch.take(list(compress(range(len(orders)), is_late))), shuffle)
            batch = batch.take([i for i, late in enumerate(is_late) if not late])
        return batch

    def _times(self, values: Records) -> list[Any]:
        times: list[Any] = values.columns[self._step.time or ""].tolist()
        for time in times:
            if not time <= time:
                raise InputError(not_a_time(self._step, time, "it is not <= itself"))
        return times

    def _to_side_output(self, late: EventBatch, shuffle: ShuffleWriter) -> None:
        lines = lines_of_values(late.values)
        if self._step.late == "fail":
            raise RunError(
                Problem(
                    "late-event",
                    f"source '{self._source}' has a late event: its time was complete when its "
                    f"epoch began; it is {lines[0][:200].decode('utf-8', 'replace').rstrip()}",
                    "allow a longer delay, or declare late='keep' or late='drop'",
                )
            )
        if self._job.topology.shows_records:
            return
        if self._step.late == "drop":
            lines = [b'{"order": "%s"}\n' % order.hex().encode() for order in late.orders]
        target = self._job.addresses.target_of_sink(late_events_sink(self._source))
        shuffle.post(target, EventBatch(late.orders, late.orders, lines), pack_lines)


class LateFilter(StatefulProcessor):
    """The late filters of all such sources, in one Spark operator."""

    def __init__(self, job: bytes) -> None:
        self._job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("newest", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        with error_boundary():
            job = load_job(self._job)
            packed: dict[int, list[bytes]] = {}
            watermarks: dict[int, list[bytes]] = {}
            filters = {
                job.addresses.late_filter_of(source) for source in job.topology.late_filtered
            }
            for row in rows:
                if row.target not in filters:
                    yield row
                else:
                    kept = packed if row.kind == DATA else watermarks
                    kept.setdefault(row.target, []).append(bytes(row.body))
            with without_gc():
                sent = self._epoch(job, int(key[0]), packed, watermarks)
            yield from map(spark_row, sent)

    def _epoch(
        self,
        job: Job,
        label: int,
        packed: dict[int, list[bytes]],
        watermarks: dict[int, list[bytes]],
    ) -> list[ShuffleRow]:
        if not packed and not watermarks:
            return []
        found = self._state.get()
        newest = _unpack_newest(bytes(found[0])) if found else {}
        shuffle = ShuffleWriter(job.addresses.labels)
        control_rows: list[ShuffleRow] = []
        for source in job.topology.late_filtered:
            filtered = LateFilteredSource(job, source)
            before = filtered.time.decode(newest[source]) if source in newest else None
            filtered.send(packed.get(filtered.target, ()), before, shuffle)
            after = before
            for time in map(filtered.time.decode, watermarks.get(filtered.target, ())):
                after = time if after is None or after <= time else after
            if after is not None:
                newest[source] = filtered.time.encode(after)
            if label == job.addresses.labels[0]:
                control_rows += _watermarks(
                    job, source, filtered.completed(before), filtered.completed(after)
                )
        self._state.update((_pack(newest),))
        return [*shuffle.drain(), *control_rows]

    def close(self) -> None:
        pass


def _watermarks(job: Job, source: str, before: Any | None, after: Any | None) -> list[ShuffleRow]:
    """The completed time to send to all buckets, if it has advanced."""
    if (
        source not in job.requirements.watermark_sources
        or after is None
        or (before is not None and after <= before)
    ):
        return []
    body = pack_watermark(source, job.codecs.watermark_codecs[source].encode(after))
    return [(label, EVERYONE, WATERMARK, body) for label in job.addresses.labels]
