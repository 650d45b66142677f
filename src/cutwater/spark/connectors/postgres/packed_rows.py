"""Rows as arrays, ready to be sent: to the server at once, or to a file until they may be shown."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cutwater.errors import Problem, StepError
from cutwater.spark.connectors.base.sink import Lane
from cutwater.spark.connectors.postgres.fields import Field, Unwritable, array_literal
from cutwater.spark.connectors.postgres.tables import Column
from cutwater.spark.exchange.columns import Records, joined_values
from cutwater.spark.storage.durable import create_file

__all__ = ["Parcel", "parcels_of", "read_parcels", "stage_parcels"]

_MAX_ROWS = 5_000
_MAX_BYTES = 32 << 20


class Parcel(msgspec.Struct, frozen=True):
    """Some rows, in order: which lane each belongs to, and an array for each column."""

    columns: tuple[str, ...]
    labels: list[int]
    arrays: list[str]


def parcels_of(
    fields: Sequence[Field], columns: dict[str, Column], lanes: Sequence[Lane], owner: str
) -> Iterator[Parcel]:
    """The rows of all lanes by their orders, in parcels of a limited size."""
    values, labels = _merged(lanes)
    for start in range(0, len(labels), _MAX_ROWS):
        part = slice(start, start + _MAX_ROWS)
        yield from _parcels(fields, columns, values[part], labels[part], owner)


def _merged(lanes: Sequence[Lane]) -> tuple[Sequence[Any], list[int]]:
    values = joined_values([lane.values for lane in lanes])
    labels = [lane.label for lane in lanes for _ in lane.orders]
    if len(lanes) == 1:
        return values, labels
    orders = [order for lane in lanes for order in lane.orders]
    places = sorted(range(len(orders)), key=orders.__getitem__)
    in_order = values.take(places) if isinstance(values, Records) else [values[i] for i in places]
    return in_order, [labels[i] for i in places]


def _parcels(
    fields: Sequence[Field],
    columns: dict[str, Column],
    values: Sequence[Any],
    labels: list[int],
    owner: str,
) -> Iterator[Parcel]:
    arrays = []
    for field in fields:
        try:
            found = _values_of(field, values)
            arrays.append(array_literal(field, columns[field.column], found))
        except Unwritable as error:
            raise StepError(_unwritable(owner, field, values[error.index], error)) from None
    if sum(map(len, arrays)) > _MAX_BYTES and len(labels) > 1:
        middle = len(labels) // 2
        yield from _parcels(fields, columns, values[:middle], labels[:middle], owner)
        yield from _parcels(fields, columns, values[middle:], labels[middle:], owner)
    else:
        yield Parcel(tuple(field.column for field in fields), labels, arrays)


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
        "correct it in a step before the sink, or leave such rows out there",
    )


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Parcel]).decode


def stage_parcels(folder: Path, epoch: int, parcels: Iterable[Parcel]) -> Path:
    """Write rows where no reader looks, and only this user may.

    The file need not survive the end of the machine: an epoch that is not shown is done again.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{epoch}-{uuid.uuid4().hex}.rows"
    with create_file(path) as file:
        file.write(_encode(list(parcels)))
    return path


def read_parcels(path: Path) -> list[Parcel]:
    """What was staged."""
    return _decode(path.read_bytes())
