"""The log of a bucket's states: numbered entries, and a head that lists them.

An entry holds what an epoch changed; a long one is cut into several. It carries the random token
of its epoch and its predecessor's: a cached copy of the states is brought up to date from the entry
that continues it, and a copy that a failed attempt made is detected.

All of it is in one map state, since each state variable costs milliseconds in each task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

__all__ = [
    "ENTRY_BYTES",
    "ENTRY_COST",
    "HEAD_KEY",
    "PART_COST",
    "READ_AT_ONCE",
    "ROW_COST",
    "ChangelogEntry",
    "EntryPart",
    "EntryWriter",
    "Head",
    "RowsPart",
    "StateStore",
    "StatesPart",
    "cuts",
]

ENTRY_BYTES = 64 << 10
"""The size at which an entry is full, in bytes."""
ENTRY_COST = 1 << 10
"""The overhead of an entry, in bytes: what reading or removing it costs beyond its size."""
ROW_COST = 4
"""The overhead of a key, beyond its bytes and those of its state."""
PART_COST = 16
"""The overhead of a part of an entry, beyond the name of its step, its keys and states."""
READ_AT_ONCE = 64 << 20
"""A log up to this many bytes is read in few round trips, a longer one entry by entry."""

HEAD_KEY = -1
"""The number of the entry that is the head."""
_KEY = StructType([StructField("sequence", LongType())])
_VALUE = StructType([StructField("data", BinaryType())])


class StatesPart(msgspec.Struct, array_like=True, tag="states"):
    """States of a step, in an entry."""

    step: str
    keys: list[bytes]
    states: list[bytes | None]
    """None: deleted."""


class RowsPart(msgspec.Struct, array_like=True, tag="rows"):
    """Rows of a step's table, in an entry."""

    step: str
    keys: list[bytes | None]
    """None: a row to skip, since the key has a newer one."""
    columns: dict[str, tuple[str, bytes]]
    """Name -> kind, values."""
    removed: list[bytes]

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        keys = [*filter(None, self.keys), *self.removed]
        columns = sum(
            len(name) + len(kind) + len(data) + ROW_COST
            for name, (kind, data) in self.columns.items()
        )
        return columns + sum(map(len, keys)) + ROW_COST * len(keys)


EntryPart = StatesPart | RowsPart


class ChangelogEntry(msgspec.Struct, array_like=True):
    """What an epoch changed, or a part of it."""

    token: bytes
    """Of the epoch."""
    previous: bytes
    """The token of what it continues."""
    parts: list[EntryPart]


class Head(msgspec.Struct, array_like=True, frozen=True):
    """What a bucket stores besides its states."""

    token: bytes = b""
    """Of the newest entry."""
    first: int = 0
    """The number of the oldest entry."""
    next: int = 0
    """The number of the entry to come."""
    total: int = 0
    """The bytes of all entries, with their overhead."""
    live: int = 0
    """The bytes of keys and states that are current."""
    credit: int = 0
    """The compaction budget in bytes; negative after an overshoot."""
    busy: int = 0
    """The keys for which a watermark can matter."""
    watermarks: dict[str, bytes] = {}
    """The completed time of each source as the bucket knows it, encoded."""


_encode = msgspec.msgpack.Encoder().encode
_decode_head = msgspec.msgpack.Decoder(Head).decode
_decode_entry = msgspec.msgpack.Decoder(ChangelogEntry).decode


class StateStore:
    """The state variable of a level, for the bucket that is being processed."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._log = handle.getMapState("log", _KEY, _VALUE)

    def head(self) -> Head:
        """The head of the bucket; of an empty one if there is none."""
        value = self._log.getValue((HEAD_KEY,))
        return Head() if value is None else _decode_head(value[0])

    def put_head(self, head: Head) -> None:
        """Change the head."""
        self._log.updateValue((HEAD_KEY,), (_encode(head),))

    def entry(self, sequence: int) -> tuple[ChangelogEntry, int]:
        """An entry, and its cost."""
        value = self._log.getValue((sequence,))
        assert value is not None, f"entry {sequence} of the log is missing"
        return _decode_entry(value[0]), len(value[0]) + ENTRY_COST

    def put_entry(self, sequence: int, entry: ChangelogEntry) -> int:
        """Write an entry; returns its cost."""
        data = _encode(entry)
        self._log.updateValue((sequence,), (data,))
        return len(data) + ENTRY_COST

    def remove_entry(self, sequence: int) -> None:
        """Remove an entry."""
        self._log.removeKey((sequence,))

    def clear(self) -> None:
        """Remove all entries, and the head."""
        self._log.clear()

    def entries(self, head: Head) -> Iterator[tuple[int, ChangelogEntry]]:
        """All entries in order, with their numbers."""
        if head.first == head.next:
            return iter(())
        if head.total > READ_AT_ONCE:
            numbers = range(head.first, head.next)
            return ((sequence, self.entry(sequence)[0]) for sequence in numbers)
        pairs = ((key[0], value[0]) for key, value in self._log.iterator())
        found = sorted((pair for pair in pairs if pair[0] != HEAD_KEY), key=lambda pair: pair[0])
        return ((sequence, _decode_entry(data)) for sequence, data in found)


class EntryWriter:
    """Puts parts into entries of a bounded size."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._room = 0
        self.entries: list[list[EntryPart]] = []

    def add(self, part: EntryPart, size: int) -> int:
        """Store a part of about this many bytes; returns the number of its entry."""
        if size > self._room:
            self.entries.append([])
            self._room = ENTRY_BYTES
        self.entries[-1].append(part)
        self._room -= size
        return self._first + len(self.entries) - 1


def cuts(total: int, sizes: Iterable[int], count: int) -> Iterator[tuple[slice, int]]:
    """Cut a sequence into slices that fit into entries, each with its size.

    `sizes` are read only if `total`, which is their sum, is too much for one entry.

    >>> list(cuts(ENTRY_BYTES + 11, [ENTRY_BYTES, 5, 6], 3))
    [(slice(0, 1, None), 65536), (slice(1, 3, None), 11)]
    """
    if total <= ENTRY_BYTES:
        yield from [(slice(0, count), total)] * (count > 0)
        return
    ends = np.cumsum(np.fromiter(sizes, np.int64, count))
    start, before = 0, 0
    while start < count:
        end = max(start + 1, int(np.searchsorted(ends, before + ENTRY_BYTES, "right")))
        yield slice(start, end), int(ends[end - 1]) - before
        start, before = end, int(ends[end - 1])
