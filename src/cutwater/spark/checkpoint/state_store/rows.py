"""Decodes Spark's binary rows (``UnsafeRow``), in the two shapes that the log of a bucket has.

A row is a bitset of nulls, 8 bytes per field, then the values of variable length, padded to 8
bytes, whose fields hold offset and length. In the state store a version byte comes before it::

    key     column family (2), length of the prefix (4), prefix, rest
    prefix  version, row of one struct: the label of a bucket
    rest    version, row of one struct: the number of an entry, or of the head
    value   version, row of one field: the bytes of the entry
"""

from __future__ import annotations

import struct

from cutwater.spark.checkpoint.state_store.formats import UnknownFormatError

__all__ = ["ALL_LABELS", "FAMILY", "data_of", "label_prefix", "sequence_of"]

FAMILY = 2
"""The column family of the map ``log``; 1 is Spark's own default."""

_STRUCT = struct.Struct("<BQIIQq")
"""Version, nulls, size and offset of the struct, its nulls, its one field."""
_DATA = struct.Struct("<BQII")
"""Version, nulls, size and offset of the bytes."""
_OFFSET = 16

ALL_LABELS = struct.pack("<HI", FAMILY, _STRUCT.size)
"""The prefix of every key."""


def label_prefix(label: int) -> bytes:
    """The prefix of the keys of a bucket."""
    return ALL_LABELS + _STRUCT.pack(0, 0, _OFFSET, _OFFSET, 0, label)


def sequence_of(key: bytes) -> tuple[int, int]:
    """The label and the entry number in a key."""
    if len(key) != len(ALL_LABELS) + 2 * _STRUCT.size or not key.startswith(ALL_LABELS):
        raise UnknownFormatError(f"{key.hex()} is no key of a log")
    label, sequence = (row[-1] for row in _STRUCT.iter_unpack(key[len(ALL_LABELS) :]))
    return label, sequence


def data_of(value: bytes) -> bytes:
    """The bytes in a value."""
    version, nulls, size, offset = _DATA.unpack(value[: _DATA.size].ljust(_DATA.size))
    end = _DATA.size + size
    if (version, nulls, offset) != (0, 0, _OFFSET) or len(value) != end + -size % 8:
        raise UnknownFormatError(f"{value[:40].hex()} is no value of a log")
    return value[_DATA.size : end]
