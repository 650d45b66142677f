"""Digests of what each tick released, to detect a replay that produces other rows (rule 10).

The ledgers drop a replayed tick, so different rows would go unnoticed, and a different state would
carry on from there. A tick that is not in the log and comes before one that is had no rows, and has
none in a replay either. Digests are not synced: they survive a kill of the process, and after
a power loss, ticks after the first damaged one are not compared.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from cutwater.codec import UNENCODABLE
from cutwater.errors import Problem, RefusedError
from cutwater.jsonable import plain
from cutwater.spark.connectors.base.sink import BucketRows
from cutwater.spark.exchange.columns import Records
from cutwater.spark.storage.durable import create_file, make_folder

__all__ = ["DigestLog", "copy_digests", "digest_of", "not_the_same"]

_RECORD = struct.Struct("<qQQ")
"""A tick, the digest of its rows, and a checksum of both."""
_encode_fast = msgspec.msgpack.Encoder(enc_hook=str, order="deterministic").encode
_encode_plain = msgspec.json.Encoder(order="deterministic").encode


_NO_ROWS = xxhash.xxh64().intdigest()
_FRESH = ".new"


def digest_of(sinks: Iterable[tuple[str, Iterable[BucketRows]]]) -> int:
    """A digest of the rows of a tick; independent of how they were packed and sent."""
    total = xxhash.xxh64()
    for name, buckets in sinks:
        for bucket in buckets:
            total.update(_encode([name, bucket.label, len(bucket.values), bucket.orders]))
            for part in _parts(bucket):
                total.update(part)
    return total.intdigest()


def _parts(bucket: BucketRows) -> Iterator[bytes]:
    if not isinstance(bucket.values, Records):
        yield _encode(list(bucket.values))
        return
    for name, column in bucket.values.columns.items():
        yield _encode([name, column.tolist()])


def _encode(value: Any) -> bytes:
    """Equal bytes for equal values, whatever they are."""
    try:
        return _encode_fast(value)
    except (TypeError, *UNENCODABLE):  # keys of a dict that are no text, large integers
        return _encode_plain(plain(value))


class DigestLog:
    """The digests of one task after a tick; written by that task alone."""

    def __init__(self, path: Path, after: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._known = {tick: digest for tick, digest in _read(path) if tick > after}
        self._after, self._newest = after, max(self._known, default=after)
        self._expected = deque(t for t in sorted(self._known) if self._known[t] != _NO_ROWS)
        _rewrite(path, self._known)
        self._file = path.open("ab", buffering=0)

    def compare(self, tick: int, digest: int) -> None:
        """Refuse a tick that was released with other rows, or without any."""
        self.pass_over(tick - 1)
        if self._after < tick <= self._newest and self._known.get(tick, _NO_ROWS) != digest:
            raise RefusedError(not_the_same(tick))
        if self._expected and self._expected[0] == tick:
            self._expected.popleft()

    def pass_over(self, tick: int) -> None:
        """Refuse if a tick up to this one was released with rows and has not been compared."""
        if self._expected and self._expected[0] <= tick:
            raise RefusedError(not_the_same(self._expected[0]))

    def note(self, tick: int, digest: int) -> None:
        """Record that a tick was released."""
        if tick not in self._known:
            self._file.write(_packed(tick, digest))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def copy_digests(source: Path, target: Path, through: int) -> None:
    """Copy the digests of all tasks up to a tick; later ones are of ticks that are forgotten."""
    make_folder(target)
    for path in source.iterdir() if source.is_dir() else ():
        if not path.name.endswith(_FRESH):
            _rewrite(target / path.name, {t: digest for t, digest in _read(path) if t <= through})


def _rewrite(path: Path, digests: Mapping[int, int]) -> None:
    fresh = path.with_name(f"{path.name}{_FRESH}")  # the partition is no suffix to replace
    with create_file(fresh) as file:
        file.writelines(_packed(*each) for each in digests.items())
    fresh.replace(path)


def _packed(tick: int, digest: int) -> bytes:
    return _RECORD.pack(tick, digest, _sum(tick, digest))


def _sum(tick: int, digest: int) -> int:
    return xxhash.xxh64_intdigest(b"%d %d" % (tick, digest))


def _read(path: Path) -> Iterator[tuple[int, int]]:
    """The records before the first damaged one; after it, a missing one may have been lost."""
    data = path.read_bytes() if path.exists() else b""
    for tick, digest, total in _RECORD.iter_unpack(
        data[: len(data) // _RECORD.size * _RECORD.size]
    ):
        if total != _sum(tick, digest):
            return
        yield tick, digest


def not_the_same(tick: int) -> Problem:
    """The problem of a tick whose replay has other rows."""
    return Problem(
        "not-deterministic",
        f"tick {tick} was released before the restart, and its replay has other rows: a function "
        "of the flow does not give the same result for the same input",
        "find it with cutwater check, and make it depend on its input alone; then start with a new "
        "checkpoint and an empty output, since states and rows of this one differ",
    )
