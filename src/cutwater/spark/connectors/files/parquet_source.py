"""A folder of Parquet files as a source: columns stay columns; a position is a row number."""

from __future__ import annotations

import json
import os
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any, ClassVar

import msgspec
import msgspec.inspect as mi
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cutwater.annotations import members, plain_type, typename
from cutwater.errors import InputError, Problem
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.long_records import MAX_RECORD_BYTES, too_long
from cutwater.spark.connectors.base.source import BadRecord, Chunk, RawBatch, RecordReader
from cutwater.spark.connectors.files.changes import cannot_be_read, check_unchanged
from cutwater.spark.connectors.files.lines import (
    MAX_FILES_PER_EPOCH,
)
from cutwater.spark.connectors.files.listing import FileSource
from cutwater.spark.connectors.files.row_sizes import row_sizes
from cutwater.spark.exchange.arrow import is_misfit, records_in
from cutwater.spark.exchange.columns import Records, objects
from cutwater.vectors import Layout

__all__ = ["NUMBERED_ROWS", "PARQUET_BATCH_ROWS", "Parquet"]

PARQUET_BATCH_ROWS = 50_000
"""The most rows that are processed together."""
NUMBERED_ROWS = 200_000
"""The same if a field is dictionary-encoded, which pays off the more its values repeat."""
_NUMBERED_BYTES = 32 << 20
"""The most bytes of a batch with dictionary-encoded fields."""
_DECODED_ROWS = 500
"""Rows decoded at once: their size is not known before."""
_SAMPLED_GROUPS = 8
"""Row groups of a file, approximately, that are sampled when it is planned."""


@dataclass(frozen=True)
class Parquet(FileSource):
    """A folder of Parquet files: each appears atomically, and does not change after that.

    Columns are the fields of the source's records, by name; other columns are ignored. A field with
    a default may be left out.
    """

    path: str
    max_rows_per_epoch: int = 500_000
    max_bytes_per_epoch: int = 64 << 20
    """The most bytes that one epoch reads, uncompressed and by the average row of each file; a
    bucket's share of it is sorted in memory."""
    idle_after: float | None = None
    """Seconds without input after which the source no longer holds back the watermark of others."""
    grows: bool = False
    """Refused: the footer of a Parquet file says what is in it, so nothing can be appended."""
    recheck_every: float = 60.0
    """Seconds within which every file that was read is checked again; a changed one is refused."""
    max_files_per_epoch: int = MAX_FILES_PER_EPOCH
    max_record_bytes: int = MAX_RECORD_BYTES
    """A row whose values together have more bytes is a bad record."""

    kind: ClassVar[str] = "Parquet"
    unit: ClassVar[str] = "rows"

    def problems(self, name: str, step: Source) -> Iterator[Problem]:
        yield from super().problems(name, step)
        if self.grows:
            yield Problem(
                "cannot-grow",
                f"source '{name}' reads Parquet with grows=True; a Parquet file cannot be "
                "appended to: its footer describes all of its content",
                "leave grows out, and add files; for logs use JSON lines or CSV",
            )

    def whole_file(self, path: str, found: os.stat_result, number: int, tp: Any) -> Chunk:
        with _sound(path), pq.ParquetFile(path) as file:
            meta, schema = file.metadata, file.schema_arrow
            groups = range(meta.num_row_groups)
            size = sum(meta.row_group(group).total_byte_size for group in groups)
            decoded = _decoded_row_bytes(file, [name or "value" for name in Layout.of(tp).columns])
        for problem in _schema_problems(path, schema, Layout.of(tp)):
            raise InputError(problem)
        rows = meta.num_rows
        least = ceil(self.max_bytes_per_epoch / self.max_rows_per_epoch)
        about = {
            "path": path,
            "size": found.st_size,
            "modified_ns": found.st_mtime_ns,
            "rows": rows,
            "row_bytes": max(size // max(rows, 1), decoded, least),
        }
        return Chunk(number, 0, rows, about)

    def within_rows(self, chunk: Chunk, rows: int) -> tuple[Chunk, int]:
        end = min(chunk.start + rows, chunk.end)
        return replace(chunk, end=end), int(end - chunk.start)

    def end_of(self, chunk: Chunk) -> Any:
        return chunk.about["rows"]

    def weight(self, chunk: Chunk) -> int:
        return int((chunk.end - chunk.start) * chunk.about["row_bytes"])

    def cut(self, chunk: Chunk, amount: int) -> Any:
        return min(chunk.start + ceil(amount / chunk.about["row_bytes"]), chunk.end)

    def reader(self, tp: Any) -> RecordReader:
        return _Rows(tp, self.max_record_bytes)

    def location(self, chunk: Chunk, position: int) -> str:
        return f"row {position + 1} of {chunk.about['path']}"

    def coordinates(self, chunk: Chunk, position: int) -> dict[str, Any]:
        return {"file": chunk.about["path"], "row": position + 1}


@contextmanager
def _sound(path: str) -> Iterator[None]:
    """Turn errors of reading a file into `InputError`, or what its errno implies."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, EOFError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # not the file's contents
            raise cannot_be_read(path, error) from None
        message = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            Problem(
                "damaged-parquet",
                f"{path} cannot be read as Parquet: {message[0]}",
                "write files elsewhere and move them in when they are complete; if it is damaged, "
                "take it away",
            )
        ) from None


def _schema_problems(path: str, schema: pa.Schema, layout: Layout) -> Iterator[Problem]:
    defaults = _Defaults(layout)
    for field, tp in layout.declared.items():
        column = field or "value"
        if schema.names.count(column) > 1:
            yield Problem("column-twice", f"{path} has a column '{column}' twice", "rename one")
        elif column not in schema.names:
            if field not in defaults.fields:
                yield Problem(
                    "missing-column",
                    f"{path} has no column '{column}', which the record needs; it has: "
                    f"{', '.join(schema.names)[:500]}",
                    "rename the columns of the file, or give the field a default",
                )
        elif _is_misfit(schema.field(column).type, tp):
            yield Problem(
                "column-of-another-type",
                f"column '{column}' of {path} is {schema.field(column).type}; the record declares "
                f"it as {typename(tp)}",
                "cast the column, or correct the annotation",
            )


def _is_misfit(found: pa.DataType, tp: Any) -> bool:
    if pa.types.is_null(found):
        return types.NoneType not in members(plain_type(tp))
    return is_misfit(_plain_type(found), tp)


class _Defaults:
    """The fields of a record that have a default, and columns of these defaults."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        fields = getattr(mi.type_info(layout.type), "fields", ()) if layout.is_record else ()
        self.fields = {field.name: field for field in fields if not field.required}

    def column(self, name: str, size: int) -> np.ndarray:
        """A column with the default of a field, `size` times."""
        field, kind = self.fields[name], self._layout.columns[name]
        if field.default is msgspec.NODEFAULT:
            return objects(field.default_factory() for _ in range(size))
        values = [field.default] * size
        return objects(values) if kind == "object" else np.array(values)


@dataclass(frozen=True)
class _Batch(Sequence[pa.RecordBatch]):
    """The rows of a batch, each as a batch of one row."""

    batch: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @property
    def nbytes(self) -> int:
        """The size of its columns in bytes."""
        return int(self.batch.nbytes)

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.batch.slice(index, 1)


class _Rows(RecordReader):
    def __init__(self, tp: Any, longest: int) -> None:
        self._layout = Layout.of(tp)
        self._longest = longest
        self._many = list[tp]
        self._defaults = _Defaults(self._layout)

    @cached_property
    def _is_checked(self) -> bool:
        """Does the record type validate its fields in ``__post_init__``?"""
        return self._layout.is_record and hasattr(self._layout.type, "__post_init__")

    def batches(self, chunk: Chunk) -> Iterator[RawBatch]:
        check_unchanged(chunk)
        path, first = chunk.about["path"], 0
        with _sound(path), pq.ParquetFile(path, read_dictionary=self._texts(path)) as file:
            found = file.schema_arrow.names
            rows = self._rows_at_once(file.metadata)
            columns = [name or "value" for name in self._layout.columns]
            wanted = [column for column in columns if column in found]
            for group in range(file.metadata.num_row_groups):
                end = first + file.metadata.row_group(group).num_rows
                if first < chunk.end and end > chunk.start:
                    batches = file.iter_batches(_DECODED_ROWS, row_groups=[group], columns=wanted)
                    yield from _between(_gathered(batches, rows), first, chunk)
                first = end
        check_unchanged(chunk)

    def _texts(self, path: str) -> list[str]:
        """The fields to read as dictionaries: text or bytes that the file can encode itself."""
        texts = [name for name in self.numbered if self._layout.columns[name] == "object"]
        return [name for name in texts if name in pq.read_schema(path).names]

    def _rows_at_once(self, metadata: pq.FileMetaData) -> int:
        """The most rows of a batch: more with dictionary-encoded fields, if rows are short."""
        if not self.numbered or not metadata.num_rows:
            return PARQUET_BATCH_ROWS
        groups = range(metadata.num_row_groups)
        size = sum(metadata.row_group(group).total_byte_size for group in groups)
        in_all = int(_NUMBERED_BYTES * metadata.num_rows // max(size, 1))
        return min(max(in_all, PARQUET_BATCH_ROWS), NUMBERED_ROWS)

    def decode(self, raw_batch: RawBatch) -> Sequence[Any]:
        assert isinstance(raw_batch.raws, _Batch)
        return self._records(raw_batch.raws.batch)

    def decode_one(self, raw: pa.RecordBatch) -> Any:
        return self._records(raw)[0]

    def _records(self, batch: pa.RecordBatch) -> Sequence[Any]:
        if batch.nbytes > self._longest and (size := row_sizes(batch).max()) > self._longest:
            raise BadRecord(too_long(int(size), self._longest))
        try:
            records = self._found(batch)
        except InputError as error:
            raise BadRecord(error.problems[0].message) from None
        except pa.ArrowException as error:
            raise BadRecord(_why(batch, error)) from None
        if not self._is_checked:
            return records
        columns = records.columns
        fields = zip(*(column.tolist() for column in columns.values()), strict=True)
        rows = [dict(zip(columns, row, strict=True)) for row in fields]
        made: list[Any] = msgspec.convert(rows, self._many, from_attributes=True)
        return made

    def _found(self, batch: pa.RecordBatch) -> Records:
        there = [name for name in self._layout.columns if (name or "value") in batch.schema.names]
        part = Layout(
            self._layout.type,
            {name: self._layout.columns[name] for name in there},
            {name: self._layout.declared[name] for name in there},
        )
        numbered = [name for name in self.numbered if name in there]
        arrays = [
            column if name in numbered else _plain(column)
            for name, column in ((name, batch.column(name or "value")) for name in there)
        ]
        found = records_in(part, arrays, "the file", numbered)
        columns = {
            name: found.columns[name]
            if name in found.columns
            else self._defaults.column(name, batch.num_rows)
            for name in self._layout.columns
        }
        return Records(self._layout, columns, found.numberings)

    def preview(self, raw: pa.RecordBatch) -> bytes:
        row = {name: _shown(raw.column(name)) for name in raw.schema.names}
        return json.dumps(row, default=str).encode()

    def count(self, chunk: Chunk) -> int:
        return int(chunk.end - chunk.start)


def _decoded_row_bytes(file: pq.ParquetFile, columns: Sequence[str]) -> int:
    """The bytes of a decoded row, estimated from the first rows of some row groups.

    The sizes in the metadata are those of encoded values: a text that occurs a million times counts
    once there.
    """
    wanted = [column for column in columns if column in file.schema_arrow.names]
    groups = file.metadata.num_row_groups
    largest = 0
    for group in range(0, groups, max(groups // _SAMPLED_GROUPS, 1)):
        try:
            batches = file.iter_batches(_DECODED_ROWS, row_groups=[group], columns=wanted)
            first = next(batches, None)
        except (pa.ArrowException, OSError):  # reported when the rows are read
            continue
        if first is not None and first.num_rows:
            largest = max(largest, first.nbytes // first.num_rows)
    return largest


def _gathered(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of about `rows` rows, or of about `_NUMBERED_BYTES` decoded."""
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        waiting.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
        if count + _DECODED_ROWS > rows or size >= _NUMBERED_BYTES:
            yield pa.concat_batches(waiting) if len(waiting) > 1 else waiting[0]
            waiting, count, size = [], 0, 0
    if waiting:
        yield pa.concat_batches(waiting) if len(waiting) > 1 else waiting[0]


def _why(batch: pa.RecordBatch, error: Exception) -> str:
    """What is wrong with a row; for invalid UTF-8 Arrow's own error says too little."""
    try:
        for column in batch.columns:
            _plain(column).validate(full=True)
    except pa.ArrowInvalid as invalid:
        return str(invalid)
    return str(error)


def _between(batches: Iterator[pa.RecordBatch], first: int, chunk: Chunk) -> Iterator[RawBatch]:
    """The rows of a chunk among batches; `first` is the row number at which these begin."""
    for batch in batches:
        start = max(chunk.start - first, 0)
        size = min(chunk.end - first, batch.num_rows) - start
        if size > 0:
            rows = range(first + start, first + start + size)
            yield RawBatch(_Batch(batch.slice(start, size)), rows)
        first += batch.num_rows
        if first >= chunk.end:
            return


def _plain_type(tp: pa.DataType) -> pa.DataType:
    """The type of a column after decoding: no dictionaries, and no nanoseconds."""
    if pa.types.is_dictionary(tp):
        return _plain_type(tp.value_type)
    if pa.types.is_timestamp(tp):
        return pa.timestamp("us", tz=tp.tz)
    if pa.types.is_duration(tp):
        return pa.duration("us")
    return tp


def _plain(array: pa.Array) -> pa.Array:
    wanted = _plain_type(array.type)
    return array if wanted == array.type else array.cast(wanted)


def _shown(column: pa.Array) -> Any:
    """The only value of a column, for people."""
    try:
        return column[0].as_py()
    except (UnicodeError, ValueError):
        return str(column.cast(pa.binary())[0].as_py())
