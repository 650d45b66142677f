"""A folder of CSV files as a source: a header line in each file, quoted line ends, typed columns.

Python's strict CSV reader, run from the first record of a file on, defines where a record ends. So
planning and reading always agree on that, however malformed the record is.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import msgspec.inspect as mi

from cutwater.annotations import typename
from cutwater.errors import InputError, Problem
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.defaults import filler_of
from cutwater.spark.connectors.base.long_records import MAX_RECORD_BYTES, RUN_BYTES, too_long
from cutwater.spark.connectors.base.source import BadRecord, Chunk, RawBatch, RecordReader
from cutwater.spark.connectors.files.csv_columns import (
    PlainRows,
    plain_layout,
    plain_rows,
    records_of,
)
from cutwater.spark.connectors.files.csv_records import (
    LONGEST_OPEN,
    complete_records,
    csv_reader,
    first_records,
    has_quotes,
    records_until,
)
from cutwater.spark.connectors.files.lines import (
    MAX_FILES_PER_EPOCH,
    MAX_ROWS_PER_EPOCH,
    longest_line,
)
from cutwater.spark.connectors.files.text import TextSource, batches_of, bytes_of, last_line_end
from cutwater.spark.exchange.batch import without_gc

__all__ = ["Csv"]

_BOM = b"\xef\xbb\xbf"
_AT_ONCE = 32 << 20
"""Bytes of a task's share that are in memory at once, plus one record."""
_SHOWN = 200
_SCALARS = (
    mi.BoolType,
    mi.BytesType,
    mi.DateTimeType,
    mi.DateType,
    mi.DecimalType,
    mi.EnumType,
    mi.FloatType,
    mi.IntType,
    mi.LiteralType,
    mi.StrType,
    mi.TimeDeltaType,
    mi.TimeType,
    mi.UUIDType,
)


@dataclass(frozen=True)
class Csv(TextSource):
    """A folder of CSV files in UTF-8: each appears atomically and does not change, or `grows`.

    The first line of each file names its columns; they are the fields of the source's records, in
    any order. A field with a default may be left out. An empty value is None if the field may be
    None, else it is empty text. Line ends inside quotes belong to the value.
    """

    path: str
    delimiter: str = ","
    max_bytes_per_epoch: int = 32 << 20
    """The most bytes that one epoch reads; a bucket's share of it is sorted in memory."""
    idle_after: float | None = None
    """Seconds without input after which the source no longer holds back the watermark of others."""
    grows: bool = False
    """Are files appended to? Then reading continues with what is new, up to the last line end."""
    recheck_every: float = 60.0
    """Seconds within which every file that was read is checked again; a changed one is refused."""
    max_rows_per_epoch: int = MAX_ROWS_PER_EPOCH
    max_files_per_epoch: int = MAX_FILES_PER_EPOCH
    max_record_bytes: int = MAX_RECORD_BYTES
    """A row with more bytes is a bad record, and is not loaded into memory."""

    kind: ClassVar[str] = "CSV"

    def problems(self, name: str, step: Source) -> Iterator[Problem]:
        yield from super().problems(name, step)
        if not (len(self.delimiter) == 1 and self.delimiter.isascii()) or self.delimiter in '"\r\n':
            yield Problem(
                "not-a-delimiter",
                f"the delimiter of source '{name}' is {self.delimiter!r}; it must be one "
                "ASCII character, neither a quote nor a line end",
                "leave delimiter out for a comma, or use ';' or '\\t'",
            )
        fields = _fields_of(step.type)
        if fields is None:
            yield Problem(
                "no-columns",
                f"source '{name}' reads CSV, and {typename(step.type)} has no fields that could "
                "be its columns",
                "use a dataclass with a field for each column",
            )
        for field in fields or ():
            if _scalar(field.type) is None:
                yield Problem(
                    "no-column-type",
                    f"field '{field.encode_name}' of {typename(step.type)} is not a number, text, "
                    f"time or other single value, so no column of CSV (source '{name}') can hold "
                    "it",
                    "give it such a type, or None as well; for nested records use JSON lines",
                )

    def whole_file(self, path: str, found: os.stat_result, number: int, tp: Any) -> Chunk:
        chunk = super().whole_file(path, found, number, tp)
        if chunk.start == chunk.end:
            return chunk
        columns, start = _header(path, self.delimiter)
        for problem in _header_problems(path, columns, _fields_of(tp) or ()):
            raise InputError(problem)
        return replace(chunk, start=start, about={**chunk.about, "columns": columns})

    def complete_end(self, path: str, start: int, size: int) -> int:
        if has_quotes(path, start, size):
            complete = complete_records(path, start, size, self.delimiter)
            if size - complete <= LONGEST_OPEN:
                return complete
        return last_line_end(path, start, size)

    def cut(self, chunk: Chunk, amount: int) -> Any:
        if chunk.start + amount >= chunk.end:
            return chunk.end
        where = chunk.about["path"], chunk.start, chunk.end
        return records_until(*where, amount, self.delimiter, self.max_record_bytes)[0]

    def reader(self, tp: Any) -> RecordReader:
        return _Rows(tp, self.delimiter, self.max_record_bytes)


@dataclass(frozen=True)
class _Malformed:
    """A record that is not a valid row of CSV."""

    why: str
    text: bytes

    def __len__(self) -> int:
        return 0


_Row = list[str] | _Malformed


class _Rows(RecordReader):
    def __init__(self, tp: Any, delimiter: str, longest: int = MAX_RECORD_BYTES) -> None:
        self._longest = longest
        self._delimiter = delimiter
        self._fields = {field.encode_name: field for field in _fields_of(tp) or ()}
        self._type = tp
        self._many = list[tp]
        self._fill = filler_of(tp)
        self._plain = plain_layout(tp)
        self._columns: list[str] = []
        self._optional: list[int] = []

    def enter(self, chunk: Chunk) -> None:
        self._columns = chunk.about["columns"]
        optional = (_is_optional(self._fields[column].type) for column in self._columns)
        self._optional = [index for index, is_optional in enumerate(optional) if is_optional]

    def batches(self, chunk: Chunk) -> Iterator[RawBatch]:
        self.enter(chunk)
        start = chunk.start
        while chunk.end - start > _AT_ONCE:
            where = chunk.about["path"], start, chunk.end
            end, last = records_until(*where, _AT_ONCE, self._delimiter, self._longest)
            is_long = end - last > self._longest + 1
            yield from self._part(replace(chunk, start=start, end=last if is_long else end))
            if is_long:
                yield self._too_long(replace(chunk, start=last, end=end))
            start = end
        yield from self._part(replace(chunk, start=start))

    def _too_long(self, chunk: Chunk) -> RawBatch:
        """A record that exceeds the limit; only its beginning is read."""
        text = bytes_of(replace(chunk, end=chunk.start + _SHOWN))
        why = too_long(chunk.end - chunk.start - 1, self._longest)
        return RawBatch([_Malformed(why, text)], [chunk.start])

    def _part(self, chunk: Chunk) -> Iterator[RawBatch]:
        """Batches of a part of a chunk that fits into memory."""
        data = bytes_of(chunk)
        is_whole = self._plain is not None and len(self._columns) == len(self._fields)
        if len(data) > self._longest and longest_line(data) > self._longest:
            is_whole = False
        plain = plain_rows(data, RUN_BYTES) if is_whole else None
        if plain is not None:
            return (RawBatch(rows, (at + chunk.start).tolist()) for rows, at in plain)
        with without_gc():
            rows, positions = _rows(data, self._delimiter, self._longest)
        return batches_of(rows, [chunk.start + position for position in positions])

    def decode(self, raw_batch: RawBatch) -> Sequence[Any]:
        raws: Sequence[Any] = raw_batch.raws
        if isinstance(raws, PlainRows) and self._plain:
            found = records_of(raws, self._plain, self._columns, self._delimiter)
            if found is not None:
                return found
            raws = list(map(self._row, raws))
        if self._optional or set(map(len, raws)) != {len(self._columns)}:
            rows = list(map(self._named, raws))
        else:
            rows = [dict(zip(self._columns, row, strict=True)) for row in raws]
        return self._filled(msgspec.convert(rows, self._many, strict=False))

    def decode_one(self, raw: _Row | bytes) -> Any:
        return self._filled([msgspec.convert(self._named(raw), self._type, strict=False)])[0]

    def _filled(self, values: list[Any]) -> list[Any]:
        if self._fill and len(self._columns) < len(self._fields):
            for value in values:
                self._fill(value)
        return values

    def _named(self, raw: _Row | bytes) -> dict[str, str | None]:
        row = self._row(raw)
        if isinstance(row, _Malformed):
            raise BadRecord(row.why)
        if len(row) != len(self._columns):
            raise BadRecord(
                f"it has {len(row)} values, and the file has {len(self._columns)} columns"
            )
        named: dict[str, str | None] = dict(zip(self._columns, row, strict=True))
        for index in self._optional:
            if not row[index]:
                named[self._columns[index]] = None
        return named

    def _row(self, raw: _Row | bytes) -> _Row:
        """The row; parses it first if it is still a raw line."""
        return _rows(raw, self._delimiter)[0][0] if isinstance(raw, bytes) else raw

    def preview(self, raw: _Row | bytes) -> bytes:
        if isinstance(raw, bytes):
            return raw
        if isinstance(raw, _Malformed):
            return raw.text
        return self._delimiter.join(raw).encode()


def _rows(
    data: bytes, delimiter: str, longest: int = MAX_RECORD_BYTES
) -> tuple[list[_Row], list[int]]:
    """The rows in some text, and the offset of each; blank lines are skipped."""
    starts = list(accumulate((len(line) + 1 for line in data.split(b"\n")), initial=0))
    text, is_clean = _decoded(data)
    reader = csv_reader(io.StringIO(text, newline="\n"), delimiter)
    rows: list[_Row] = []
    positions: list[int] = []
    start = 0
    while True:
        row: list[str] | None = None
        why = ""
        try:
            row = next(reader, None)
            if row is None:
                return rows, positions
        except csv.Error as error:
            why = str(error).split(" - ")[0]
        end = starts[reader.line_num]
        if row and not is_clean and not _is_text(row):
            why = "it is not UTF-8"
        if end - start > longest + 1:
            rows.append(
                _Malformed(too_long(end - start - 1, longest), data[start : start + _SHOWN])
            )
            positions.append(start)
            start = end
            continue
        if row or why:
            rows.append(_Malformed(why, data[start:end].rstrip()) if why else row or [])
            positions.append(start)
        start = end


def _decoded(data: bytes) -> tuple[str, bool]:
    """The text, and whether all of it is UTF-8; invalid bytes become lone surrogates."""
    try:
        return data.decode(), True
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape"), False


def _is_text(row: Sequence[str]) -> bool:
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        return False
    return True


def _header(path: str, delimiter: str) -> tuple[list[str], int]:
    """The columns of a file, and the offset of its first record; raises `InputError` if none."""
    with Path(path).open("rb") as file:
        before = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
        file.seek(before)
        size, _ = first_records(file, 1, delimiter, MAX_RECORD_BYTES)
        file.seek(before)
        data = file.read(min(size, MAX_RECORD_BYTES))
    rows, _ = _rows(data, delimiter) if len(data) == size else ([], [])
    if not rows or isinstance(rows[0], _Malformed):
        raise InputError(
            Problem(
                "no-header",
                f"the first line of {path} names no columns: "
                f"{data[:_SHOWN].decode('utf-8', 'replace').rstrip()!r}",
                "begin the file with a line of column names",
            )
        )
    return rows[0], before + size


def _header_problems(
    path: str, columns: Sequence[str], fields: Sequence[mi.Field]
) -> Iterator[Problem]:
    declared = [field.encode_name for field in fields]
    required = [field.encode_name for field in fields if field.required]
    message = f"the first line of {path} names {', '.join(map(repr, columns))[:500]}"
    for column in columns:
        if column not in declared:
            yield Problem(
                "unknown-column",
                f"{message}, but the record has no field {column!r}; it has: {', '.join(declared)}",
                "leave the column out, or add a field",
            )
        elif columns.count(column) > 1:
            yield Problem("column-twice", f"{message}, {column!r} twice", "leave one of them out")
    for name in required:
        if name not in columns:
            yield Problem(
                "missing-column",
                f"{message}, but the record needs a column {name!r}",
                f"add it to the file, or give the field a default: {name}: ... = ...",
            )


def _fields_of(tp: Any) -> Sequence[mi.Field] | None:
    """The fields of a record type; None if a row of CSV cannot be of this type."""
    try:
        found = mi.type_info(tp)
    except TypeError:
        return None
    is_record = isinstance(found, mi.DataclassType) or (
        isinstance(found, mi.StructType) and not found.array_like
    )
    return found.fields if is_record else None  # type: ignore[attr-defined]


def _scalar(tp: mi.Type) -> mi.Type | None:
    """The scalar type of a column, without None; None if there is no single one."""
    types = [t for t in (tp.types if isinstance(tp, mi.UnionType) else (tp,)) if not _is_none(t)]
    return types[0] if len(types) == 1 and isinstance(types[0], _SCALARS) else None


def _is_none(tp: mi.Type) -> bool:
    return isinstance(tp, mi.NoneType)


def _is_optional(tp: mi.Type) -> bool:
    return isinstance(tp, mi.UnionType) and any(map(_is_none, tp.types))
