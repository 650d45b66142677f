"""Streaming DataFrames as sources and sinks: a flow inside an ordinary PySpark job.

Rows of a DataFrame arrive as columns, and stay columnar until a step needs them one by one.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from cutwater.errors import InputError, Problem, StepError
from cutwater.ordering import NO_KEY, canonical, order_bytes, terminated
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.exchange.arrow import arrays_of, arrow_schema, in_utc, records_in
from cutwater.spark.exchange.batch import EventBatch, without_gc
from cutwater.spark.exchange.columns import Records, record_codec
from cutwater.spark.exchange.envelope import ROW_SCHEMA, ShuffleWriter, record_batches
from cutwater.spark.exchange.router import Sender
from cutwater.spark.job.error_boundary import error_boundary
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import load_job
from cutwater.spark.operators.late_filter import LateFilteredSource
from cutwater.spark.operators.reading import first_failure
from cutwater.vectors import Layout

__all__ = ["FRAME_BATCH_ROWS", "FrameRows", "rows_of", "sink_records"]

FRAME_BATCH_ROWS = 50_000
"""About how many rows are addressed and sent together."""
_FOLDED_ROWS = 200_000
"""The same, if pre-aggregation sends only one value per key."""
_FOLDED_BYTES = 32 << 20
"""Above this many bytes, `FRAME_BATCH_ROWS` suffice for pre-aggregation, too."""
_SIGN = np.uint64(1 << 63)
_MAGNITUDE = np.int64((1 << 63) - 1)
_EXACT = decimal.Context(prec=80)


def rows_of(job: Job, data: bytes, name: str, frame: Frame) -> DataFrame:
    """The rows for the first level, or for the sinks."""
    layout = Layout.of(job.topology.source_step(name).type)
    columns = list(dict.fromkeys([*(field or "value" for field in layout.columns), *frame.order]))
    named = [frame.data[f"`{column}`"] for column in columns]
    return frame.data.select(*named).mapInArrow(FrameRows(data, name), ROW_SCHEMA)


class FrameRows:
    """Addresses the rows of a DataFrame, in the tasks that read it."""

    def __init__(self, job: bytes, source: str) -> None:
        self._job = job
        self._source = source

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn batches of the DataFrame into addressed rows."""
        with error_boundary():
            work = _FrameWork(load_job(self._job), self._source)
            for batch in _together(batches, _FOLDED_ROWS if work.numbered else FRAME_BATCH_ROWS):
                with without_gc():
                    found = work.send(batch)
                yield from found
            with without_gc():
                rest = work.rest()
            yield from rest


def _together(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Combine batches to about `rows` rows each: Spark's own are smaller."""
    waiting: list[pa.RecordBatch] = []
    size = weight = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.num_rows
        weight += batch.nbytes
        if size >= rows or (size >= FRAME_BATCH_ROWS and weight >= _FOLDED_BYTES):
            yield pa.concat_batches(waiting)
            waiting, size, weight = [], 0, 0
    if size:
        yield pa.concat_batches(waiting)


class _FrameWork:
    def __init__(self, job: Job, source: str) -> None:
        self._source = source
        self._job = job
        segment = job.topology.source_segment(source)
        self._step = job.topology.source_step(source)
        self._layout = Layout.of(self._step.type)
        frame = job.sources[source]
        assert isinstance(frame, Frame)
        self._order = frame.order
        self._rank = order_bytes((job.addresses.source_ranks[source],))
        self._shuffle = ShuffleWriter(job.addresses.labels)
        self._sender = Sender(job, segment, self._shuffle)
        self.numbered = [] if source in job.topology.late_filtered else self._sender.numbered
        """Fields to dictionary-encode."""
        self._is_timed = segment.number in job.requirements.times
        self._keyless_label = job.addresses.keyless_label
        self._unordered = count()
        self._late_filtered = (
            LateFilteredSource(job, source) if source in job.topology.late_filtered else None
        )
        self._newest: Any = None

    def send(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """The addressed rows of a batch."""
        arrays = [batch.column(field or "value") for field in self._layout.columns]
        values = records_in(self._layout, arrays, f"source '{self._source}'", self.numbered)
        if self._late_filtered:
            return self._to_late_filter(self._late_filtered, batch, values)
        times = values.columns[self._step.time or ""].tolist() if self._is_timed else None
        orders = self._orders(batch) if self._sender.is_order_sensitive else []
        sent = EventBatch(
            orders, [NO_KEY] * len(values), values, times=times, label=self._keyless_label
        )
        try:
            self._sender.through(sent)
        except StepError as error:
            raise self._with_origin(batch, sent, error) from error.__cause__
        return list(record_batches(self._shuffle.ready()))

    def _with_origin(self, batch: pa.RecordBatch, sent: EventBatch, error: StepError) -> StepError:
        """The error with the row that caused it, identified by its order columns."""
        sender = Sender(self._job, self._job.topology.source_segment(self._source), self._shuffle)
        orders = sent.orders or [b""] * len(sent)
        rows = replace(sent, orders=orders)
        alone = [rows.take([row]) for row in range(len(rows))]
        found = first_failure(alone, sender.through)
        if not found or not self._order:
            return error
        row, failed = found
        message = ", ".join(f"{name} {batch.column(name)[row].as_py()}" for name in self._order)
        return failed.came_from(f"the row of source '{self._source}' with {message}")

    def _to_late_filter(
        self, filtered: LateFilteredSource, batch: pa.RecordBatch, values: Records
    ) -> list[pa.RecordBatch]:
        """The rows of a batch on their way to the late filter, spread by their order."""
        self._newest = filtered.newest_of(values, self._newest)
        orders = self._orders(batch)
        self._shuffle.post(filtered.target, EventBatch(orders, orders, values), filtered.pack)
        return list(record_batches(self._shuffle.drain()))

    def rest(self) -> list[pa.RecordBatch]:
        """The remaining rows, once everything is read."""
        control_rows = self._late_filtered.control_rows(self._newest) if self._late_filtered else []
        return list(record_batches([*self._shuffle.drain(), *control_rows]))

    def _orders(self, batch: pa.RecordBatch) -> list[bytes]:
        columns = [batch.column(name) for name in self._order]
        if not columns:
            return self._as_they_come(batch.num_rows)
        empty = [n for n, c in zip(self._order, columns, strict=True) if c.null_count]
        if empty:
            raise InputError(_no_place(self._source, empty[0]))
        if all(_is_whole(column) for column in columns):
            return _fixed_orders(self._rank, columns)
        parts = [[terminated(canonical(v)) for v in _sortable(column)] for column in columns]
        return [self._rank + b"".join(row) for row in zip(*parts, strict=True)]

    def _as_they_come(self, size: int) -> list[bytes]:
        context = TaskContext.get()
        before = self._rank + order_bytes((context.partitionId() if context else 0,))
        return [before + next(self._unordered).to_bytes(8, "big") for _ in range(size)]


def _no_place(source: str, column: str) -> Problem:
    return Problem(
        "null-in-an-order",
        f"source '{source}' has a row without '{column}', which is the position of a row",
        "filter such rows out before, or name other columns in order",
    )


def _is_whole(column: pa.Array) -> bool:
    return bool(pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type))


def _sortable(column: pa.Array) -> list[Any]:
    """Values whose canonical bytes sort like the column: fractions as whole numbers."""
    values: list[Any] = in_utc(column).to_pylist()
    if pa.types.is_decimal(column.type):
        return [int(value.scaleb(column.type.scale, _EXACT)) for value in values]
    if pa.types.is_floating(column.type):
        bits = (column.cast(pa.float64()).to_numpy() + 0.0).view(np.int64)  # turns -0.0 into 0.0
        values = np.where(bits < 0, bits ^ _MAGNITUDE, bits).tolist()
    return values


def _fixed_orders(rank: bytes, columns: Sequence[pa.Array]) -> list[bytes]:
    """Eight bytes per number, which sort like the numbers."""
    table = np.empty((len(columns[0]), len(columns)), ">u8")
    for number, column in enumerate(columns):
        table[:, number] = column.cast(pa.int64()).to_numpy().view(np.uint64) ^ _SIGN
    width, data = 8 * len(columns), table.tobytes()
    return [rank + data[start : start + width] for start in range(0, len(data), width)]


def sink_records(job: Job, data: bytes, rows: DataFrame) -> DataFrame:
    """The records for the sinks of a flow, as a DataFrame.

    With one sink, its records; with several, a column per sink, named after it, all but one null.
    """
    schema = _shown_schema(job)
    return rows.mapInArrow(_Shown(data), from_arrow_schema(schema))


def _shown_schema(job: Job) -> pa.Schema:
    schemas = {
        name: arrow_schema(layout, f"sink '{name}'") for name, layout in _layouts(job).items()
    }
    if len(schemas) == 1:
        return next(iter(schemas.values()))
    return pa.schema([(name, pa.struct(list(found))) for name, found in schemas.items()])


def _layouts(job: Job) -> dict[str, Layout]:
    return {sink.name: Layout.of(job.plan.segments[n].output.value) for sink, n in job.plan.sinks}


class _Shown:
    """Converts rows for the sinks to rows of a DataFrame."""

    def __init__(self, job: bytes) -> None:
        self._job = job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with error_boundary():
            job = load_job(self._job)
            layouts, schema = _layouts(job), _shown_schema(job)
            targets = {job.addresses.target_of_sink(name): name for name in layouts}
            codecs = {name: record_codec(layout.type) for name, layout in layouts.items()}
            for batch in batches:
                bodies = zip(batch.column("target"), batch.column("body"), strict=True)
                for target, body in bodies:
                    name = targets[target.as_py()]
                    records = codecs[name].decode(body.as_py())
                    yield _shown_batch(name, records, schema, is_alone=len(layouts) == 1)


def _shown_batch(
    name: str, records: Records, schema: pa.Schema, *, is_alone: bool
) -> pa.RecordBatch:
    if is_alone:
        arrays = arrays_of(records.layout, records.columns, schema)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    own = schema.field(name).type
    arrays = arrays_of(records.layout, records.columns, pa.schema(list(own)))
    struct = pa.StructArray.from_arrays(arrays, fields=list(own))
    columns = [
        struct if field.name == name else pa.nulls(len(records), field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
