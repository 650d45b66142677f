"""Records that are too large: each is a bad record; only its beginning is kept."""

from __future__ import annotations

from cutwater.spark.connectors.base.source import BadRecord

__all__ = ["MAX_RECORD_BYTES", "RUN_BYTES", "SHOWN_BYTES", "LongRecord", "too_long"]

MAX_RECORD_BYTES = 16 << 20
"""A record is in memory several times while it is decoded, encoded and sent."""
RUN_BYTES = 4 << 20
"""Bytes that are decoded and sent together, approximately."""
SHOWN_BYTES = 200
"""Bytes of a record that is too long, kept for people."""


class LongRecord(bytes):
    """The beginning of a record that is too long; the rest was skipped. It comes alone."""

    size: int
    """The length of the record in bytes."""
    limit: int

    @classmethod
    def of(cls, beginning: bytes, size: int, limit: int) -> LongRecord:
        """A record of `size` bytes that begins so."""
        made = cls(beginning[:SHOWN_BYTES])
        made.size, made.limit = size, limit
        return made

    def refuse(self) -> None:
        """Raise `BadRecord`: the record is too long."""
        raise BadRecord(too_long(self.size, self.limit))


def too_long(size: int, limit: int) -> str:
    """Why a record that is too long is bad."""
    return f"it has {size} bytes, and a record has at most {limit} (max_record_bytes)"
