"""Keeps the state of buckets in a worker's memory, and tracks what changed since a snapshot.

The in-memory counterpart of Spark's state store: `BucketStates` works on either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cutwater.spark.realtime.snapshots import Changes
from cutwater.spark.state.bucket import StateStore

__all__ = ["MOST_DELTAS", "BucketMemory", "LevelMemory"]


class BucketMemory:
    """The log of one bucket, as `StateStore` reads and writes it."""

    def __init__(self, entries: dict[int, bytes]) -> None:
        self._entries = entries
        self._changed: dict[int, bytes | None] = {}
        self.size = sum(map(len, entries.values()))

    def getMapState(self, name: str, _key: Any, _value: Any) -> BucketMemory:
        """The only state variable there is."""
        return self

    def getValue(self, key: tuple[int]) -> tuple[bytes] | None:
        found = self._entries.get(key[0])
        return None if found is None else (found,)

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:
        self.size += len(value[0]) - len(self._entries.get(key[0], b""))
        self._entries[key[0]] = self._changed[key[0]] = value[0]

    def removeKey(self, key: tuple[int]) -> None:
        removed = self._entries.pop(key[0], None)
        if removed is not None:
            self.size -= len(removed)
            self._changed[key[0]] = None

    def clear(self) -> None:
        self._changed.update(dict.fromkeys(self._entries))
        self._entries.clear()
        self.size = 0

    def iterator(self) -> Iterator[tuple[tuple[int], tuple[bytes]]]:
        return (((number,), (data,)) for number, data in self._entries.items())

    def changes(self) -> dict[int, bytes | None]:
        """The changes since the last call."""
        changed, self._changed = self._changed, {}
        return changed

    def everything(self) -> dict[int, bytes | None]:
        """All entries; the next `changes` count from here."""
        self._changed = {}
        return dict(self._entries)


class LevelMemory:
    """The buckets of one task."""

    def __init__(self, state: Changes, deltas: int = 0) -> None:
        """Begin with the stored state, made of a full snapshot and `deltas` deltas."""
        self._buckets = {
            label: BucketMemory({number: data for number, data in entries.items() if data})
            for label, entries in state.items()
        }
        self._since_full, self._deltas = 0, deltas
        self._is_next_full = False

    def store_all_next(self) -> None:
        """The last snapshot failed: make the next one full, so that it includes those changes."""
        self._is_next_full = True

    def store(self, label: int) -> StateStore:
        """The store of a bucket."""
        bucket = self._buckets.setdefault(label, BucketMemory({}))
        return StateStore(bucket)  # type: ignore[arg-type]

    def snapshot(self) -> tuple[Changes, bool]:
        """What to store now, and whether that is the full state.

        Deltas are bounded in size, relative to the state, and in number: a start reads all deltas
        since the last full snapshot, and older files are removed.
        """
        size = sum(bucket.size for bucket in self._buckets.values())
        is_outgrown = self._since_full > 2 * size + _SMALL or self._deltas >= MOST_DELTAS
        if is_outgrown or self._is_next_full:
            self._since_full = self._deltas = 0
            self._is_next_full = False
            return {label: bucket.everything() for label, bucket in self._buckets.items()}, True
        found = {label: bucket.changes() for label, bucket in self._buckets.items()}
        changes: Changes = {label: changed for label, changed in found.items() if changed}
        self._deltas += bool(changes)
        self._since_full += sum(len(d or b"") + 8 for c in changes.values() for d in c.values())
        return changes, False


MOST_DELTAS = 100
"""After this many deltas comes a full snapshot."""
_SMALL = 1 << 20
"""Fewer bytes of deltas than this never cause a full snapshot."""
