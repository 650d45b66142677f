"""The gate of DataFrames whose source has a watermark: what is late stays out, the rest goes on.

Our own readers know the newest time of a source before an epoch begins; of a DataFrame nobody
does. So its rows pass through an operator of their own first, spread over the buckets. Each task
that reads tells every bucket the newest time it saw; all buckets therefore know the same newest
time at the end of an epoch, judge by it in the next one, and the first of them says what is
complete now.
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
from cutwater.spark.exchange.batch import Batch, much_at_once
from cutwater.spark.exchange.columns import Records, record_codec
from cutwater.spark.exchange.envelope import (
    DATA,
    EVERYONE,
    MARK,
    NEWEST,
    Outbox,
    Parcel,
    pack_lines,
    pack_mark,
    row_of,
)
from cutwater.spark.exchange.router import Sender
from cutwater.spark.exchange.sink_rows import lines_of_values
from cutwater.spark.job.spec import Job, load_job, speaking

__all__ = ["Gate", "Gated"]

_STATE = StructType([StructField("newest", BinaryType())])
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(tuple[list[bytes], bytes]).decode
_unpack_newest = msgspec.msgpack.Decoder(dict[str, bytes]).decode


class Gated:
    """A source with a gate: how its rows are written, read and judged."""

    def __init__(self, job: Job, source: str) -> None:
        self._job = job
        self._source = source
        self.target = job.gate_of(source)
        self._step = job.source_step(source)
        self._segment = job.source_segment(source)
        self._records = record_codec(self._step.type)
        self.time = codec_of(time_kept_as(self._segment.output.time))
        """How the newest time is encoded."""
        self._home = job.home

    # --- before the gate -----------------------------------------------------------------------

    def pack(self, batch: Batch) -> bytes:
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

    def notices(self, newest: Any | None) -> list[Parcel]:
        """What every bucket is told of the newest time."""
        if newest is None:
            return []
        body = self.time.encode(newest)
        return [(label, self.target, NEWEST, body) for label in self._job.labels]

    # --- behind it -----------------------------------------------------------------------------

    def send(self, bodies: Sequence[bytes], newest: Any | None, outbox: Outbox) -> None:
        """Send on what is not late, by what was complete when the epoch began."""
        sender = Sender(self._job, self._segment, outbox)
        is_timed = self._segment.number in self._job.needs.times
        for body in bodies:
            batch = self._in_time(*self._read(body), newest, outbox)
            batch.times = batch.times if is_timed else None
            sender.through(batch)

    def completed(self, newest: Any | None) -> Any | None:
        """What is complete with this newest time; None: nothing."""
        rule = self._step.watermark
        return None if newest is None or rule is None else rule.watermark(newest)

    def _read(self, body: bytes) -> tuple[list[bytes], Records]:
        orders, values = _unpack(body)
        return orders, self._records.decode(values)

    def _in_time(
        self, orders: list[bytes], values: Records, newest: Any | None, outbox: Outbox
    ) -> Batch:
        times = self._times(values)
        batch = Batch(orders, [NO_KEY] * len(orders), values, times=times, label=self._home)
        completed = self.completed(newest)
        if completed is None:
            return batch
        is_late = [bool(time <= completed) for time in times]
        if any(is_late):
            self._aside(batch.take(list(compress(range(len(orders)), is_late))), outbox)
            batch = batch.take([i for i, late in enumerate(is_late) if not late])
        return batch

    def _times(self, values: Records) -> list[Any]:
        times: list[Any] = values.columns[self._step.time or ""].tolist()
        for time in times:
            if not time <= time:
                raise InputError(not_a_time(self._step, time, "it is not <= itself"))
        return times

    def _aside(self, late: Batch, outbox: Outbox) -> None:
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
        if self._job.shows_records:
            return
        if self._step.late == "drop":
            lines = [b'{"order": "%s"}\n' % order.hex().encode() for order in late.orders]
        target = self._job.target_of_sink(late_events_sink(self._source))
        outbox.post(target, Batch(late.orders, late.orders, lines), pack_lines)


class Gate(StatefulProcessor):
    """The gates of all such sources, in one Spark operator."""

    def __init__(self, job: bytes) -> None:
        self._job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("newest", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        with speaking():
            job = load_job(self._job)
            mail: dict[int, list[bytes]] = {}
            told: dict[int, list[bytes]] = {}
            gates = {job.gate_of(source) for source in job.gated}
            for row in rows:
                if row.target not in gates:
                    yield row
                else:
                    kept = mail if row.kind == DATA else told
                    kept.setdefault(row.target, []).append(bytes(row.body))
            with much_at_once():
                parcels = self._epoch(job, int(key[0]), mail, told)
            yield from map(row_of, parcels)

    def _epoch(
        self, job: Job, label: int, mail: dict[int, list[bytes]], told: dict[int, list[bytes]]
    ) -> list[Parcel]:
        if not mail and not told:
            return []
        found = self._state.get()
        newest = _unpack_newest(bytes(found[0])) if found else {}
        outbox = Outbox(job.labels)
        notices: list[Parcel] = []
        for source in job.gated:
            gated = Gated(job, source)
            before = gated.time.decode(newest[source]) if source in newest else None
            gated.send(mail.get(gated.target, ()), before, outbox)
            after = before
            for time in map(gated.time.decode, told.get(gated.target, ())):
                after = time if after is None or after <= time else after
            if after is not None:
                newest[source] = gated.time.encode(after)
            if label == job.labels[0]:
                notices += _marks(job, source, gated.completed(before), gated.completed(after))
        self._state.update((_pack(newest),))
        return [*outbox.take(), *notices]

    def close(self) -> None:
        pass


def _marks(job: Job, source: str, before: Any | None, after: Any | None) -> list[Parcel]:
    """What all buckets are told that the source has completed, if that is news."""
    if source not in job.needs.telling or after is None or (before is not None and after <= before):
        return []
    body = pack_mark(source, job.mark_codecs[source].encode(after))
    return [(label, EVERYONE, MARK, body) for label in job.labels]
