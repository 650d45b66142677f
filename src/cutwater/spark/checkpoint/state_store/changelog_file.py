"""A changelog: what one epoch put and removed, and which versions it builds on.

::

    LZ4Block frames of
      "v4"      a Java string: two bytes of length come first
      lineage   a JSON list of the versions since the last snapshot, as a string
      records   kind (1), length and bytes of the key, length and bytes of the value
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from cutwater.spark.checkpoint.state_store.formats import UnknownFormatError

__all__ = ["Changelog", "Version", "read_changelog"]

_MAGIC = b"LZ4Block"
_FRAME = struct.Struct("<8sBiiI")
"""Magic, method and level, compressed and original length, checksum."""
_STORED, _COMPRESSED = 0x10, 0x20
_SMALLEST_BLOCK = 1 << 10
_END, _PUT, _DELETE = 0x00, 0x01, 0x10


class Version(msgspec.Struct, frozen=True, rename={"unique_id": "checkpointUniqueId"}):
    """A version of a partition's state; each attempt of a task writes one with an id of its own."""

    version: int
    unique_id: str

    @property
    def name(self) -> str:
        """The names of its files, without the suffix."""
        return f"{self.version}_{self.unique_id}"


_lineage = msgspec.json.Decoder(list[Version]).decode


@dataclass(frozen=True)
class Changelog:
    """The content of a changelog."""

    lineage: list[Version]
    """The versions from the last snapshot to the one before this, oldest first."""
    changes: dict[bytes, bytes | None]
    """The newest value of each key; None: it was removed."""


def read_changelog(data: bytes) -> Changelog:
    """Decode a changelog; raises `UnknownFormatError` if it is not of version 4."""
    plain = _Reader(b"".join(_frames(data)))
    if plain.text() != b"v4":
        raise UnknownFormatError("the changelog is not of version 4")
    lineage = _lineage(plain.text())
    return Changelog(lineage, dict(plain.records()))


def _frames(data: bytes) -> Iterator[bytes]:
    codec, at = pa.Codec("lz4_raw"), 0
    while at < len(data):
        head = data[at : at + _FRAME.size].ljust(_FRAME.size, b"\0")
        magic, token, size, original, _ = _FRAME.unpack(head)
        method, body = token & 0xF0, data[at + _FRAME.size : at + _FRAME.size + size]
        is_known = magic == _MAGIC and method in (_STORED, _COMPRESSED)
        if not is_known or len(body) != size or original > _SMALLEST_BLOCK << (token & 0x0F):
            raise UnknownFormatError("the changelog is not compressed by LZ4")
        if original:
            yield body if method == _STORED else codec.decompress(body, original, asbytes=True)
        at += _FRAME.size + size


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def text(self) -> bytes:
        """Decode a string as Java writes it."""
        return self._take(int.from_bytes(self._take(2), "big"))

    def records(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Each key with its value; None: it was removed."""
        while (kind := self._take(1)[0]) != _END:
            key = self._take(self._length())
            size = self._length()
            if (kind, size < 0) not in ((_PUT, False), (_DELETE, True)):
                raise UnknownFormatError(f"the changelog has a record of kind {kind}")
            yield key, None if size < 0 else self._take(size)

    def _length(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise UnknownFormatError("the changelog ends in the middle of a record")
        self._at += size
        return taken
