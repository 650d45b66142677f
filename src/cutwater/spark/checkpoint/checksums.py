"""Checks a file of Spark's against the checksums that Hadoop's file system keeps beside it.

``.name.crc`` holds ``crc\\0``, the block size in bytes, and a CRC-32 per block. Spark also writes
the length of some files into ``name.crc``, as JSON.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from cutwater.spark.storage.durable import parse_json

__all__ = ["are_sums", "why_altered"]

_MAGIC = b"crc\0"


def are_sums(data: bytes) -> bool:
    """Is it a valid checksum file? If not, Hadoop refuses to read the file beside it."""
    is_whole = len(data) >= 8 and data[:4] == _MAGIC and (len(data) - 8) % 4 == 0
    return is_whole and struct.unpack(">i", data[4:8])[0] > 0


def why_altered(path: Path) -> str | None:
    """Why a file does not match its checksums; None if it does, or if there are none."""
    size = path.stat().st_size
    expected = _length_by_spark(path.with_name(f"{path.name}.crc"))
    if expected is not None and expected != size:
        return f"it has {size} bytes instead of {expected}"
    sums = path.with_name(f".{path.name}.crc")
    if not sums.exists():
        return None
    data = sums.read_bytes()
    if not are_sums(data):
        return None  # the file itself may be intact
    (block,) = struct.unpack(">i", data[4:8])
    blocks = [value for (value,) in struct.iter_unpack(">I", data[8:])]
    if len(blocks) != -(-size // block):
        return f"it has {size} bytes and its checksums cover about {len(blocks) * block}"
    with path.open("rb") as file:
        for number, expected_sum in enumerate(blocks):
            if zlib.crc32(file.read(block)) != expected_sum:
                return f"its bytes from offset {number * block} on do not match their checksum"
    return None


def _length_by_spark(path: Path) -> int | None:
    try:
        return int(parse_json(path.read_bytes())["mainFileSize"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
