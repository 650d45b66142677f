"""Streaming DataFrames as sources and sinks: a flow inside an ordinary PySpark job.

Rows of a DataFrame come as columns, and stay columns as long as nobody wants them one by one.
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
from cutwater.spark.exchange.arrow import arrays_of, in_utc, records_in, schema_of
from cutwater.spark.exchange.batch import Batch, much_at_once
from cutwater.spark.exchange.columns import Records, record_codec
from cutwater.spark.exchange.envelope import ROW_SCHEMA, Outbox, record_batches
from cutwater.spark.exchange.router import Sender
from cutwater.spark.job.spec import Job, load_job, speaking
from cutwater.spark.operators.late_filter import Gated
from cutwater.spark.operators.reading import first_failure
from cutwater.vectors import Layout

__all__ = ["RUN_ROWS", "FrameRows", "rows_of", "shown"]

RUN_ROWS = 50_000
"""About so many rows are addressed and sent together."""
_FOLDED_ROWS = 200_000
"""And so many where only one value of each key is sent."""
_FOLDED_BYTES = 32 << 20
"""If they are so many bytes at the most."""
_SIGN = np.uint64(1 << 63)
_MAGNITUDE = np.int64((1 << 63) - 1)
_EXACT = decimal.Context(prec=80)


def rows_of(job: Job, data: bytes, name: str, frame: Frame) -> DataFrame:
    """The rows that go to the first level, or to the sinks."""
    layout = Layout.of(job.source_step(name).type)
    columns = list(dict.fromkeys([*(field or "value" for field in layout.columns), *frame.order]))
    named = [frame.data[f"`{column}`"] for column in columns]
    return frame.data.select(*named).mapInArrow(FrameRows(data, name), ROW_SCHEMA)


class FrameRows:
    """Addresses the rows of a DataFrame, in the tasks that read it."""

    def __init__(self, job: bytes, source: str) -> None:
        self._job = job
        self._source = source

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that some batches of the DataFrame become."""
        with speaking():
            work = _FrameWork(load_job(self._job), self._source)
            for batch in _together(batches, _FOLDED_ROWS if work.numbered else RUN_ROWS):
                with much_at_once():
                    found = work.send(batch)
                yield from found
            with much_at_once():
                rest = work.rest()
            yield from rest


def _together(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of about so many rows: Spark's own are smaller."""
    waiting: list[pa.RecordBatch] = []
    size = weight = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.num_rows
        weight += batch.nbytes
        if size >= rows or (size >= RUN_ROWS and weight >= _FOLDED_BYTES):
            yield pa.concat_batches(waiting)
            waiting, size, weight = [], 0, 0
    if size:
        yield pa.concat_batches(waiting)


class _FrameWork:
    def __init__(self, job: Job, source: str) -> None:
        self._source = source
        self._job = job
        segment = job.source_segment(source)
        self._step = job.source_step(source)
        self._layout = Layout.of(self._step.type)
        frame = job.sources[source]
        assert isinstance(frame, Frame)
        self._order = frame.order
        self._rank = order_bytes((job.source_ranks[source],))
        self._outbox = Outbox(job.labels)
        self._sender = Sender(job, segment, self._outbox)
        self.numbered = [] if source in job.gated else self._sender.numbered
        """Fields of which it pays to know which of their values are the same."""
        self._is_timed = segment.number in job.needs.times
        self._home = job.home
        self._unordered = count()
        self._gated = Gated(job, source) if source in job.gated else None
        self._newest: Any = None

    def send(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """The rows that a batch becomes."""
        arrays = [batch.column(field or "value") for field in self._layout.columns]
        values = records_in(self._layout, arrays, f"source '{self._source}'", self.numbered)
        if self._gated:
            return self._to_gate(self._gated, batch, values)
        times = values.columns[self._step.time or ""].tolist() if self._is_timed else None
        orders = self._orders(batch) if self._sender.minds_order else []
        sent = Batch(orders, [NO_KEY] * len(values), values, times=times, label=self._home)
        try:
            self._sender.through(sent)
        except StepError as error:
            raise self._with_origin(batch, sent, error) from error.__cause__
        return list(record_batches(self._outbox.ready()))

    def _with_origin(self, batch: pa.RecordBatch, sent: Batch, error: StepError) -> StepError:
        """The error with the row that it came from, by the columns that say where it stands."""
        sender = Sender(self._job, self._job.source_segment(self._source), self._outbox)
        orders = sent.orders or [b""] * len(sent)
        rows = replace(sent, orders=orders)
        alone = [rows.take([row]) for row in range(len(rows))]
        found = first_failure(alone, sender.through)
        if not found or not self._order:
            return error
        row, failed = found
        said = ", ".join(f"{name} {batch.column(name)[row].as_py()}" for name in self._order)
        return failed.came_from(f"the row of source '{self._source}' with {said}")

    def _to_gate(
        self, gated: Gated, batch: pa.RecordBatch, values: Records
    ) -> list[pa.RecordBatch]:
        """The rows of a batch on their way to the gate, spread by their order."""
        self._newest = gated.newest_of(values, self._newest)
        orders = self._orders(batch)
        self._outbox.post(gated.target, Batch(orders, orders, values), gated.pack)
        return list(record_batches(self._outbox.take()))

    def rest(self) -> list[pa.RecordBatch]:
        """What is sent once all is read."""
        notices = self._gated.notices(self._newest) if self._gated else []
        return list(record_batches([*self._outbox.take(), *notices]))

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
        f"source '{source}' has a row without '{column}', which says where a row stands",
        "leave such rows out before, or name other columns in order",
    )


def _is_whole(column: pa.Array) -> bool:
    return bool(pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type))


def _sortable(column: pa.Array) -> list[Any]:
    """Values whose canonical bytes sort as the column does: whole numbers for fractions."""
    values: list[Any] = in_utc(column).to_pylist()
    if pa.types.is_decimal(column.type):
        return [int(value.scaleb(column.type.scale, _EXACT)) for value in values]
    if pa.types.is_floating(column.type):
        bits = (column.cast(pa.float64()).to_numpy() + 0.0).view(np.int64)  # 0.0 for -0.0
        values = np.where(bits < 0, bits ^ _MAGNITUDE, bits).tolist()
    return values


def _fixed_orders(rank: bytes, columns: Sequence[pa.Array]) -> list[bytes]:
    """Eight bytes for each number, which sort as the numbers do."""
    table = np.empty((len(columns[0]), len(columns)), ">u8")
    for number, column in enumerate(columns):
        table[:, number] = column.cast(pa.int64()).to_numpy().view(np.uint64) ^ _SIGN
    width, data = 8 * len(columns), table.tobytes()
    return [rank + data[start : start + width] for start in range(0, len(data), width)]


def shown(job: Job, data: bytes, rows: DataFrame) -> DataFrame:
    """What the sinks of a flow are given, as a DataFrame.

    Of one sink its records; of several a column for each, named after it, all empty but one.
    """
    schema = _shown_schema(job)
    return rows.mapInArrow(_Shown(data), from_arrow_schema(schema))


def _shown_schema(job: Job) -> pa.Schema:
    schemas = {name: schema_of(layout, f"sink '{name}'") for name, layout in _layouts(job).items()}
    if len(schemas) == 1:
        return next(iter(schemas.values()))
    return pa.schema([(name, pa.struct(list(found))) for name, found in schemas.items()])


def _layouts(job: Job) -> dict[str, Layout]:
    return {sink.name: Layout.of(job.plan.segments[n].output.value) for sink, n in job.plan.sinks}


class _Shown:
    """Makes rows of a DataFrame of what was sent to the sinks."""

    def __init__(self, job: bytes) -> None:
        self._job = job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with speaking():
            job = load_job(self._job)
            layouts, schema = _layouts(job), _shown_schema(job)
            targets = {job.target_of_sink(name): name for name in layouts}
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
