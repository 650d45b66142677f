"""The state of buckets in a worker's memory, which remembers what changed since a snapshot.

The twin of Spark's state store: `BucketStates` lies on either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cutwater.spark.realtime.snapshots import Changes
from cutwater.spark.state.bucket import StateStore

__all__ = ["BucketMemory", "LevelMemory"]


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
        """What changed since this was asked last."""
        changed, self._changed = self._changed, {}
        return changed

    def everything(self) -> dict[int, bytes | None]:
        """All there is; the next changes are those since now."""
        self._changed = {}
        return dict(self._entries)


class LevelMemory:
    """The buckets of one task."""

    def __init__(self, state: Changes) -> None:
        self._buckets = {
            label: BucketMemory({number: data for number, data in entries.items() if data})
            for label, entries in state.items()
        }
        self._since_full = 0

    def store(self, label: int) -> StateStore:
        """The store of a bucket."""
        bucket = self._buckets.setdefault(label, BucketMemory({}))
        return StateStore(bucket)  # type: ignore[arg-type]

    def snapshot(self) -> tuple[Changes, bool]:
        """What is to be stored now, and if that is everything: deltas do not outgrow the state."""
        size = sum(bucket.size for bucket in self._buckets.values())
        if self._since_full > 2 * size + _SMALL:
            self._since_full = 0
            return {label: bucket.everything() for label, bucket in self._buckets.items()}, True
        found = {label: bucket.changes() for label, bucket in self._buckets.items()}
        changes: Changes = {label: changed for label, changed in found.items() if changed}
        self._since_full += sum(len(d or b"") + 8 for c in changes.values() for d in c.values())
        return changes, False


_SMALL = 1 << 20
"""So many bytes of deltas are not worth a full snapshot."""
