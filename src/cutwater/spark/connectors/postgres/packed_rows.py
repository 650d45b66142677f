"""Rows encoded as arrays: sent to the server at once, or staged in a file until published."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cutwater.errors import Problem, StepError
from cutwater.spark.connectors.base.refusals import damaged_staging
from cutwater.spark.connectors.base.sink import BucketRows
from cutwater.spark.connectors.postgres.fields import Field, Unwritable, array_literal
from cutwater.spark.connectors.postgres.tables import TableColumn
from cutwater.spark.exchange.columns import Records, joined_values
from cutwater.spark.storage.durable import create_file

__all__ = ["RowBatch", "read_row_batches", "row_batches_of", "stage_row_batches"]

_MAX_ROWS = 5_000
"""Rows of one statement."""
_MAX_BYTES = 32 << 20
"""Bytes of one statement, which client and server hold in memory."""


class RowBatch(msgspec.Struct, frozen=True):
    """Some rows, in order: the label of each row's bucket, and an array literal per column."""

    columns: tuple[str, ...]
    labels: list[int]
    arrays: list[str]


def row_batches_of(
    fields: Sequence[Field],
    columns: dict[str, TableColumn],
    buckets: Sequence[BucketRows],
    owner: str,
) -> Iterator[RowBatch]:
    """The rows of all buckets, sorted by order, in batches of a limited size.

    Raises `StepError` if a value cannot be written to its column.
    """
    values, labels = _merged(buckets)
    for start in range(0, len(labels), _MAX_ROWS):
        part = slice(start, start + _MAX_ROWS)
        yield from _row_batches(fields, columns, values[part], labels[part], owner)


def _merged(buckets: Sequence[BucketRows]) -> tuple[Sequence[Any], list[int]]:
    values = joined_values([bucket.values for bucket in buckets])
    labels = [bucket.label for bucket in buckets for _ in bucket.orders]
    if len(buckets) == 1:
        return values, labels
    orders = [order for bucket in buckets for order in bucket.orders]
    indices = sorted(range(len(orders)), key=orders.__getitem__)
    in_order = values.take(indices) if isinstance(values, Records) else [values[i] for i in indices]
    return in_order, [labels[i] for i in indices]


def _row_batches(
    fields: Sequence[Field],
    columns: dict[str, TableColumn],
    values: Sequence[Any],
    labels: list[int],
    owner: str,
) -> Iterator[RowBatch]:
    arrays = []
    for field in fields:
        try:
            found = _values_of(field, values)
            arrays.append(array_literal(field, columns[field.column], found))
        except Unwritable as error:
            raise StepError(_unwritable(owner, field, values[error.index], error)) from None
    if sum(map(len, arrays)) > _MAX_BYTES and len(labels) > 1:
        middle = len(labels) // 2
        yield from _row_batches(fields, columns, values[:middle], labels[:middle], owner)
        yield from _row_batches(fields, columns, values[middle:], labels[middle:], owner)
    else:
        yield RowBatch(tuple(field.column for field in fields), labels, arrays)


def _values_of(field: Field, values: Sequence[Any]) -> list[Any]:
    if isinstance(values, Records):
        return list(values.columns[field.name].tolist())
    return [getattr(value, field.name) for value in values] if field.name else list(values)


def _unwritable(owner: str, field: Field, row: Any, error: Unwritable) -> Problem:
    shown = repr(row)
    shown = shown if len(shown) <= 200 else f"{shown[:200]}… ({len(shown):,} characters)"
    return Problem(
        "unwritable-row",
        f"{owner} cannot write the row {shown}: {field.column}: {error}",
        "correct it in a step before the sink, or filter such rows out",
    )


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[RowBatch]).decode


def stage_row_batches(folder: Path, epoch: int, batches: Iterable[RowBatch]) -> Path:
    """Write rows to a new file, readable by its owner only.

    The file is not synced: an epoch that was not published is repeated after a crash.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{epoch}-{uuid.uuid4().hex}.rows"
    with create_file(path) as file:
        file.write(_encode(list(batches)))
    return path


def read_row_batches(path: Path) -> list[RowBatch]:
    """The batches of a staged file; raises `ResourceError` if it is damaged."""
    try:
        return _decode(path.read_bytes())
    except (ValueError, RecursionError) as error:
        sink = path.parent.name
        raise damaged_staging(sink, path, error) from None
