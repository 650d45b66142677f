"""The rows between stages: addressed parcels of events.

A row is ``(label, target, kind, body)``: the label of a bucket, the number of a segment or sink,
and a body of many events, each ``(order, key, time, payload)``; or it is a notice to a bucket. One
row for many events, because Spark's cost is per row: in large batches packed rows moved about four
times as many events per second as one row each through the same interface, and about one and a
half times as many as one row each through pandas; in small batches there was no difference
(``benchmarks/row_format.py``).
Payloads are encoded by the codec of their target, so that a vectorised target may choose a
columnar one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from pyspark.sql.types import BinaryType, ByteType, IntegerType, StructField, StructType

__all__ = [
    "DATA",
    "END",
    "EVERYONE",
    "MARK",
    "PARCEL_BYTES",
    "ROW_SCHEMA",
    "Entry",
    "Outbox",
    "pack",
    "pack_mark",
    "to_columns",
    "unpack",
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

DATA = 0
"""The kind of a row that holds data."""
MARK = 1
"""The kind of a row that tells a bucket what a source has completed (`pack_mark`)."""
END = 2
"""The kind of a row that tells a bucket that the input has ended."""
EVERYONE = -1
"""The target of a row that is for all segments of its bucket."""

Entry = tuple[bytes, bytes, bytes | None, bytes]
"""Order, canonical key, time, payload."""

PARCEL_BYTES = 1 << 20
"""A body is closed when it has about this much."""

pack = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder(list[Entry]).decode
unpack_mark = msgspec.msgpack.Decoder(tuple[str, bytes]).decode


def pack_mark(source: str, time: bytes) -> bytes:
    """The body of a row that tells what a source has completed, its time encoded."""
    return pack((source, time))


class Outbox:
    """Collects entries by address and gives them up as rows."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], list[Entry]] = {}
        self._sizes: dict[tuple[int, int], int] = {}
        self._closed: list[tuple[int, int, int, bytes]] = []

    def add(self, label: int, target: int, entry: Entry) -> None:
        """Put an entry into the parcel for an address."""
        address = (label, target)
        parcel = self._open.setdefault(address, [])
        parcel.append(entry)
        size = self._sizes.get(address, 0) + len(entry[0]) + len(entry[1]) + len(entry[3])
        self._sizes[address] = size
        if size >= PARCEL_BYTES:
            self._close(address)

    def take_closed(self) -> list[tuple[int, int, int, bytes]]:
        """The rows that are full."""
        closed, self._closed = self._closed, []
        return closed

    def take_all(self) -> Iterator[tuple[int, int, int, bytes]]:
        """All rows; the outbox is empty after."""
        for address in list(self._open):
            self._close(address)
        yield from self.take_closed()

    def _close(self, address: tuple[int, int]) -> None:
        label, target = address
        self._closed.append((label, target, DATA, pack(self._open.pop(address))))
        del self._sizes[address]


def to_columns(rows: list[tuple[int, int, int, bytes]]) -> list[list[Any]]:
    """Rows as columns."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]
