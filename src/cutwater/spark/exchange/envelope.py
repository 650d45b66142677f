"""The rows between stages: addressed parcels of events.

A row is ``(label, target, kind, body)``: the label of a bucket, the number of a segment or sink,
and a body of many events; or it is a notice to a bucket. One row for many events, because Spark's
cost is per row: in large batches packed rows moved about four times as many events per second as
one row each through the same interface, and about one and a half times as many as one row each
through pandas; in small batches there was no difference (``benchmarks/row_format.py``).
What a body looks like is between who sends it and its target (`letters`, `tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.types import BinaryType, ByteType, IntegerType, StructField, StructType

from cutwater.spark.exchange.batch import Batch

__all__ = [
    "ARROW_SCHEMA",
    "BEHIND",
    "DATA",
    "END",
    "EVERYONE",
    "GATHERED",
    "LARGEST_BATCH",
    "LARGEST_BODY",
    "MARK",
    "NEWEST",
    "ROW_SCHEMA",
    "Fold",
    "Outbox",
    "Parcel",
    "pack_lines",
    "pack_mark",
    "record_batches",
    "row_of",
    "unpack_lines",
    "unpack_mark",
]

ROW_SCHEMA = StructType(
    [
        StructField("label", IntegerType()),
        StructField("target", IntegerType()),
        StructField("kind", ByteType()),
        StructField("body", BinaryType()),
    ]
)
ARROW_SCHEMA = pa.schema(
    [("label", pa.int32()), ("target", pa.int32()), ("kind", pa.int8()), ("body", pa.binary())]
)

DATA = 0
"""The kind of a row that holds events."""
MARK = 1
"""The kind of a row that tells a bucket what a source has completed (`pack_mark`)."""
END = 2
"""The kind of a row that tells a bucket that the input has ended."""
BEHIND = b"behind"
"""The body of such a row that is for what is behind a loop; else it is for what is before it."""
NEWEST = 3
"""The kind of a row that tells a gate the newest time that a task has read."""
EVERYONE = -1
"""The target of a row that is for all segments of its bucket."""

Parcel = tuple[int, int, int, bytes]
"""The fields of a row."""

LARGEST_BODY = 16 << 20
"""A body with more than this is split, if there is more than one event in it."""

LARGEST_BATCH = 16 << 20
"""Rows whose bodies have more than this go in several batches: the JVM holds each whole, twice."""

GATHERED = 64 << 20
"""So many bytes of values wait at most to be folded with others, about half a million with short
keys; where half of them are left after that, there is nothing to gain by waiting."""

_pack = msgspec.msgpack.Encoder().encode
unpack_mark = msgspec.msgpack.Decoder(tuple[str, bytes]).decode
unpack_lines = msgspec.msgpack.Decoder(tuple[list[bytes], list[bytes]]).decode
"""The orders and lines of a parcel for a sink."""


def pack_mark(source: str, time: bytes) -> bytes:
    """The body of a row that tells what a source has completed, its time encoded."""
    return _pack((source, time))


def pack_lines(batch: Batch) -> bytes:
    """The body of a row for a sink; the values are the lines."""
    return _pack((batch.orders, batch.values))


class Fold(Protocol):
    """Makes fewer values of many, for a target that is given no less by them."""

    def folded(self, batches: Sequence[Batch]) -> Batch:
        """One value for all of each key; those that were made so may be among them."""

    def pack(self, batch: Batch) -> bytes:
        """The body of a row."""


class Outbox:
    """Collects what is sent, as rows."""

    def __init__(self, labels: Sequence[int]) -> None:
        self._labels = labels
        self._rows: list[Parcel] = []
        self._new: list[tuple[int, Fold, Batch]] = []
        self._gathered: dict[int, _Gathered] = {}

    def post(self, target: int, batch: Batch, pack: Callable[[Batch], bytes]) -> None:
        """Send events to a target, to the bucket of each key."""
        for part in batch.by_label(self._labels):
            for body in _bodies(part, pack):
                assert part.label is not None
                self._rows.append((part.label, target, DATA, body))

    def gather(self, target: int, batch: Batch, fold: Fold) -> None:
        """Send values to a target, folded with others of the same key."""
        self._new.append((target, fold, batch))

    def drop(self) -> None:
        """Forget what came since rows were last asked for."""
        self._rows, self._new = [], []

    def ready(self) -> list[Parcel]:
        """The rows that need not wait: values that are gathered wait for more, up to many."""
        for target, fold, batch in self._new:
            gathered = self._gathered.setdefault(target, _Gathered(fold))
            gathered.add(batch)
            if gathered.weight >= GATHERED and gathered.folded().weight > GATHERED // 2:
                self._send(target)
        rows = self._rows
        self._rows, self._new = [], []
        return rows

    def take(self) -> list[Parcel]:
        """All rows; the outbox is empty after."""
        rows = self.ready()
        for target in list(self._gathered):
            self._send(target)
        rows += self._rows
        self._rows = []
        return rows

    def _send(self, target: int) -> None:
        gathered = self._gathered.pop(target).folded()
        for batch in gathered.batches:
            self.post(target, batch, gathered.fold.pack)


@dataclass
class _Gathered:
    """Values for one target that wait for others of their keys."""

    fold: Fold
    batches: list[Batch] = field(default_factory=list)
    weight: int = 0
    _is_folded: bool = False

    def add(self, batch: Batch) -> None:
        """Let one more batch wait."""
        self.batches.append(batch)
        self.weight += _weight(batch)
        self._is_folded = False

    def folded(self) -> _Gathered:
        """The same with one value for each key."""
        if not self._is_folded:
            batch = self.fold.folded(self.batches)
            self.batches, self.weight, self._is_folded = [batch], _weight(batch), True
        return self


def _weight(batch: Batch) -> int:
    """About how many bytes of memory folded values take; they hold each key twice."""
    return 64 * len(batch) + 2 * sum(map(len, batch.key_bytes))


def _bodies(batch: Batch, pack: Callable[[Batch], bytes]) -> Iterator[bytes]:
    if not len(batch):
        return
    body = pack(batch)
    if len(body) <= LARGEST_BODY or len(batch) == 1:
        yield body
    else:
        for half in batch.halves():
            yield from _bodies(half, pack)


def row_of(parcel: Parcel) -> Row:
    """A row as Spark has it."""
    return Row(**dict(zip(ROW_SCHEMA.names, parcel, strict=True)))


def record_batches(rows: Sequence[Parcel]) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow has them, at most `LARGEST_BATCH` at a time or one."""
    start = weight = 0
    for end, (_, _, _, body) in enumerate(rows):
        weight += len(body)
        if weight > LARGEST_BATCH and end > start:
            yield _record_batch(rows[start:end])
            start, weight = end, len(body)
    if rows:
        yield _record_batch(rows[start:])


def _record_batch(rows: Sequence[Parcel]) -> pa.RecordBatch:
    columns: list[Any] = list(zip(*rows, strict=True))
    arrays = [pa.array(c, tp) for c, tp in zip(columns, ARROW_SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)
