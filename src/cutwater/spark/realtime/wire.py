"""The rows between tasks: everything a tick has for one receiver in one row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
import pyarrow as pa

from cutwater.spark.exchange.envelope import ShuffleRow

__all__ = ["NO_SENDER", "SCHEMA", "WIRE", "barrier_rows", "nudge_rows", "tick_rows", "unpack_rows"]

WIRE = pa.schema(
    [("receiver", pa.int32()), ("sender", pa.int32()), ("tick", pa.int64()), ("body", pa.binary())]
)
SCHEMA = "receiver int, sender int, tick long, body binary"
"""The same schema for Spark."""

NO_SENDER = -1
"""The sender of an empty row: Spark hands a row to Python only once it has the next one."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[tuple[int, int, int, bytes]]).decode


def tick_rows(
    sender: int, tick: int, rows: Iterable[ShuffleRow], receivers: Mapping[int, int], count: int
) -> Iterator[pa.RecordBatch]:
    """A row for each of `count` receivers; `receivers` says which one has a bucket.

    A row without events is the barrier alone.
    """
    bodies: list[list[ShuffleRow]] = [[] for _ in range(count)]
    for row in rows:
        bodies[receivers[row[0]]].append(row)
    yield _batch(sender, tick, [_pack(found) if found else b"" for found in bodies])


def barrier_rows(sender: int, tick: int, count: int) -> Iterator[pa.RecordBatch]:
    """Rows which promise that nothing more comes from the sender up to this tick."""
    yield _batch(sender, tick, [b""] * count)


def nudge_rows(count: int) -> Iterator[pa.RecordBatch]:
    """Empty rows, so that no receiver gets a row only with the next tick."""
    yield _batch(NO_SENDER, 0, [], nudges=count)


def unpack_rows(bodies: Iterable[bytes]) -> Iterator[ShuffleRow]:
    """The shuffle rows in the rows of a tick."""
    for body in bodies:
        yield from _unpack(body)


def _batch(sender: int, tick: int, bodies: list[bytes], nudges: int = 0) -> pa.RecordBatch:
    """A row for each receiver, followed by an empty one for each.

    All in one batch: each batch costs a message to the JVM, and a wake-up there.
    """
    count, empty = len(bodies), nudges or len(bodies)
    arrays = [
        pa.array([*range(count), *range(empty)], pa.int32()),
        pa.array([sender] * count + [NO_SENDER] * empty, pa.int32()),
        pa.array([tick] * count + [0] * empty, pa.int64()),
        pa.array([*bodies, *[b""] * empty], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=WIRE)
