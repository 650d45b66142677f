"""The rows that Spark shuffles between stages.

A row is ``(label, target, kind, body)``: the label of a bucket, the number of a segment or sink,
and a body of many events; or it is a control row for a bucket. One row holds many events because
Spark's cost is per row: in large batches, packed rows moved about four times as many events per
second as one row per event through the same interface, and about one and a half times as many as
one row per event through pandas; in small batches there was no difference
(``benchmarks/row_format.py``). Sender and target agree on the format of a body (`event_codec`,
`sink_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.types import BinaryType, ByteType, IntegerType, StructField, StructType

from cutwater.spark.exchange.batch import EventBatch

__all__ = [
    "ARROW_SCHEMA",
    "BEHIND",
    "DATA",
    "END",
    "EVERYONE",
    "GATHERED",
    "LARGEST_BATCH",
    "LARGEST_BODY",
    "NEWEST",
    "OVER",
    "ROW_SCHEMA",
    "WATERMARK",
    "Fold",
    "InputEpochs",
    "ShuffleRow",
    "ShuffleWriter",
    "pack_lines",
    "pack_number",
    "pack_watermark",
    "record_batches",
    "spark_row",
    "split_input_epoch",
    "unpack_lines",
    "unpack_watermark",
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
WATERMARK = 1
"""The kind of a control row with the watermark of a source (`pack_watermark`)."""
END = 2
"""The kind of a control row for the end of the input."""
BEHIND = b"behind"
"""The body of an `END` row for segments downstream of a loop; any other is for those upstream."""
NEWEST = 3
"""The kind of a row that gives a late filter the newest time that a task has read."""
OVER = 4
"""The kind of a control row for the end of an input epoch in a loop (`pack_number`)."""
EVERYONE = -1
"""The target of a row for all segments of its bucket."""

ShuffleRow = tuple[int, int, int, bytes]
"""The fields of a shuffled row."""

LARGEST_BODY = 16 << 20
"""A larger body, in bytes, is split if it holds more than one event."""

LARGEST_BATCH = 16 << 20
"""The most bytes of bodies in an Arrow batch: the JVM holds a whole batch in memory, twice."""

GATHERED = 64 << 20
"""The most bytes of values that are buffered for pre-aggregation, about half a million values with
short keys. If half of them remain after folding, buffering does not pay off."""

_pack = msgspec.msgpack.Encoder().encode
unpack_watermark = msgspec.msgpack.Decoder(tuple[str, bytes]).decode
unpack_lines = msgspec.msgpack.Decoder(tuple[list[bytes], list[bytes]]).decode
"""The orders and lines of a row for a sink."""


def pack_watermark(source: str, time: bytes) -> bytes:
    """The body of a watermark row: a source and the encoded time that it has completed."""
    return _pack((source, time))


def pack_lines(batch: EventBatch) -> bytes:
    """The body of a row for a sink; the values of the batch are lines."""
    return _pack((batch.orders, batch.values))


class Fold(Protocol):
    """Pre-aggregates before the shuffle."""

    def folded(self, batches: Sequence[EventBatch]) -> EventBatch:
        """One value per key; some of the batches may be results of an earlier fold."""

    def pack(self, batch: EventBatch) -> bytes:
        """The body of a row."""


@dataclass(frozen=True)
class InputEpochs:
    """The input epochs in a loop that is cut at a log: one epoch processes several of them."""

    current: int
    """The one that began in this epoch: records of sources belong to it."""
    targets: frozenset[int]
    """The segments of the loop, and its logs: rows for them carry the number of an input epoch."""


def pack_number(number: int) -> bytes:
    """The number of an input epoch as bytes: the prefix of a body that belongs to it."""
    return number.to_bytes(_NUMBER, "big")


def split_input_epoch(body: bytes) -> tuple[int, bytes]:
    """The number of the input epoch to which a body belongs, and the rest of the body."""
    return int.from_bytes(body[:_NUMBER], "big"), body[_NUMBER:]


_NUMBER = 8


class ShuffleWriter:
    """Buffers the rows that a task sends."""

    def __init__(self, labels: Sequence[int], inputs: InputEpochs | None = None) -> None:
        self._labels = labels
        self._inputs = inputs
        self._rows: list[ShuffleRow] = []
        self._new: list[tuple[int, Fold, EventBatch]] = []
        self._gathered: dict[int, _Gathered] = {}

    def post(self, target: int, batch: EventBatch, pack: Callable[[EventBatch], bytes]) -> None:
        """Send events to the buckets of their keys in a target."""
        for part in batch.by_label(self._labels):
            for body in _bodies(part, pack):
                assert part.label is not None
                self._rows.append((part.label, target, DATA, self._addressed(target, body)))

    def _addressed(self, target: int, body: bytes) -> bytes:
        if self._inputs is None or target not in self._inputs.targets:
            return body
        return pack_number(self._inputs.current) + body

    def for_input(self, number: int) -> ShuffleWriter:
        """Another writer, for what an input epoch causes."""
        assert self._inputs is not None
        return ShuffleWriter(self._labels, replace(self._inputs, current=number))

    def gather(self, target: int, batch: EventBatch, fold: Fold) -> None:
        """Buffer values for a target, to be pre-aggregated by key."""
        self._new.append((target, fold, batch))

    def drop(self) -> None:
        """Discard what was sent since the last call of `ready` or `drain`."""
        self._rows, self._new = [], []

    def ready(self) -> list[ShuffleRow]:
        """Returns the rows that can be sent now; values to pre-aggregate stay, up to a limit."""
        for target, fold, batch in self._new:
            gathered = self._gathered.setdefault(target, _Gathered(fold))
            gathered.add(batch)
            if gathered.weight >= GATHERED and gathered.folded().weight > GATHERED // 2:
                self._send(target)
        rows = self._rows
        self._rows, self._new = [], []
        return rows

    def drain(self) -> list[ShuffleRow]:
        """Returns all rows and empties the writer."""
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
    """Values for one target, buffered to be folded with others of the same keys."""

    fold: Fold
    batches: list[EventBatch] = field(default_factory=list)
    weight: int = 0
    _is_folded: bool = False

    def add(self, batch: EventBatch) -> None:
        """Buffer one more batch."""
        self.batches.append(batch)
        self.weight += _weight(batch)
        self._is_folded = False

    def folded(self) -> _Gathered:
        """The same, folded to one value per key."""
        if not self._is_folded:
            batch = self.fold.folded(self.batches)
            self.batches, self.weight, self._is_folded = [batch], _weight(batch), True
        return self


def _weight(batch: EventBatch) -> int:
    """The approximate memory of folded values in bytes; they hold each key twice."""
    return 64 * len(batch) + 2 * sum(map(len, batch.key_bytes))


def _bodies(batch: EventBatch, pack: Callable[[EventBatch], bytes]) -> Iterator[bytes]:
    if not len(batch):
        return
    body = pack(batch)
    if len(body) <= LARGEST_BODY or len(batch) == 1:
        yield body
    else:
        for half in batch.halves():
            yield from _bodies(half, pack)


def spark_row(row: ShuffleRow) -> Row:
    """A row as Spark's `Row`."""
    return Row(**dict(zip(ROW_SCHEMA.names, row, strict=True)))


def record_batches(rows: Sequence[ShuffleRow]) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow batches of at most `LARGEST_BATCH` bytes, or of one row."""
    start = weight = 0
    for end, (_, _, _, body) in enumerate(rows):
        weight += len(body)
        if weight > LARGEST_BATCH and end > start:
            yield _record_batch(rows[start:end])
            start, weight = end, len(body)
    if rows:
        yield _record_batch(rows[start:])


def _record_batch(rows: Sequence[ShuffleRow]) -> pa.RecordBatch:
    columns: list[Any] = list(zip(*rows, strict=True))
    arrays = [pa.array(c, tp) for c, tp in zip(columns, ARROW_SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)
