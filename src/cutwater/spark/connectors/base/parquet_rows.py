"""Writes records to Parquet files, with one column per field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cutwater.annotations import typename
from cutwater.errors import CutwaterError, InputError, Problem
from cutwater.spark.exchange.arrow import arrays_of, arrow_schema
from cutwater.spark.exchange.columns import Records
from cutwater.vectors import Layout

__all__ = ["ROWS_AT_ONCE", "parquet_column_problems", "schema_of_record", "write_parquet"]

ROWS_AT_ONCE = 50_000
"""Rows that are converted to Arrow at a time; they become one row group."""

_UNWRITABLE = (pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError)


def schema_of_record(sink: str, record: Any) -> pa.Schema:
    """The schema of a table of records; raises `RefusedError` if a field cannot be a column."""
    return arrow_schema(Layout.of(record), f"sink '{sink}'")


def parquet_column_problems(sink: str, record: Any) -> Iterator[Problem]:
    """Why a table cannot hold records of a type."""
    try:
        names = schema_of_record(sink, record).names
    except CutwaterError as error:
        yield from error.problems
        return
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            yield Problem(
                "columns-alike",
                f"sink '{sink}' would have the columns '{other}' and '{name}', which many readers "
                "treat as one",
                f"rename a field of {typename(record)}",
            )


def write_parquet(file: BinaryIO, sink: str, record: Any, values: Records) -> None:
    """Write records to a file in order; raises `InputError` if a value does not fit its column."""
    schema = schema_of_record(sink, record)
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for start in range(0, len(values), ROWS_AT_ONCE):
            writer.write_batch(_batch(sink, values[start : start + ROWS_AT_ONCE], schema))


def _batch(sink: str, values: Records, schema: pa.Schema) -> pa.RecordBatch:
    try:
        arrays = arrays_of(values.layout, values.columns, schema)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    except _UNWRITABLE:
        raise _culprit(sink, values, schema) from None


def _culprit(sink: str, values: Records, schema: pa.Schema) -> Exception:
    """The error for the first field of the first row whose value does not fit its column."""
    for index in range(len(values)):
        row = values.take(np.array([index]))
        for (name, kind), field in zip(values.layout.columns.items(), schema, strict=True):
            layout = Layout(values.layout.type, {name: kind}, values.layout.declared)
            try:
                arrays_of(layout, {name: row.columns[name]}, pa.schema([field]))
            except _UNWRITABLE as error:
                value = _shortened(row.columns[name].tolist()[0])
                return InputError(
                    Problem(
                        "no-column-value",
                        f"sink '{sink}' cannot write {value} to column '{field.name}' of "
                        f"{field.type}: {_first_line(error)}",
                        "map it to a value of that type before the sink, or leave such rows out",
                    )
                )
    return InputError(
        Problem(
            "no-column-value",
            f"sink '{sink}' cannot write {len(values)} rows at once as columns",
            "send fewer rows per epoch, or shorter ones",
        )
    )


def _shortened(value: Any) -> str:
    try:
        literal = ascii(value)
    except (RecursionError, ValueError):
        return f"a {type(value).__name__}"
    return literal if len(literal) <= 80 else f"{literal[:80]}… ({len(literal)} characters)"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
