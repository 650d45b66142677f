"""The rows between tasks: everything a tick has for one receiver in one row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
import pyarrow as pa

from cutwater.spark.exchange.envelope import Parcel

__all__ = ["NOBODY", "SCHEMA", "WIRE", "border_rows", "parcels_in", "tick_rows"]

WIRE = pa.schema(
    [("receiver", pa.int32()), ("sender", pa.int32()), ("tick", pa.int64()), ("body", pa.binary())]
)
SCHEMA = "receiver int, sender int, tick long, body binary"
"""The same in Spark's words."""

NOBODY = -1
"""The sender of a row that says nothing: Spark hands a row to Python when it has the next one."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[tuple[int, int, int, bytes]]).decode


def tick_rows(
    sender: int, tick: int, parcels: Iterable[Parcel], receivers: Mapping[int, int], count: int
) -> Iterator[pa.RecordBatch]:
    """A row for each of `count` receivers; `receivers` says which one has a bucket.

    A row without events is the border alone.
    """
    bodies: list[list[Parcel]] = [[] for _ in range(count)]
    for parcel in parcels:
        bodies[receivers[parcel[0]]].append(parcel)
    for receiver, found in enumerate(bodies):
        yield _row(receiver, sender, tick, _pack(found) if found else b"")
    yield from _pushing(count)


def border_rows(sender: int, tick: int, count: int) -> Iterator[pa.RecordBatch]:
    """Nothing more comes from the sender up to this tick."""
    for receiver in range(count):
        yield _row(receiver, sender, tick, b"")
    yield from _pushing(count)


def _pushing(count: int) -> Iterator[pa.RecordBatch]:
    """So that no receiver waits for the next tick to be given this one."""
    for receiver in range(count):
        yield _row(receiver, NOBODY, 0, b"")


def parcels_in(bodies: Iterable[bytes]) -> Iterator[Parcel]:
    """What the rows of a tick hold."""
    for body in bodies:
        yield from _unpack(body)


def _row(receiver: int, sender: int, tick: int, body: bytes) -> pa.RecordBatch:
    """One row is one batch: a batch is sent when it is full."""
    arrays = [
        pa.array([receiver], pa.int32()),
        pa.array([sender], pa.int32()),
        pa.array([tick], pa.int64()),
        pa.array([body], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=WIRE)
