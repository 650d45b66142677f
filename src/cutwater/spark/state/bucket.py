"""The state of one bucket: all its keys together, as a changelog with incremental compaction.

State is stored per step and key, encoded, or as the rows of a table. An epoch appends what it
changed to the log. When most of the log is stale, each epoch also compacts its oldest entries, in
proportion to what it appends: what is still current in them is written again, and they are removed.
So the cost of an epoch depends on what it changes, not on the number of keys.

A worker caches the states between epochs, and catches up by reading the entries it has missed. If
those do not continue its copy, because a failed attempt had changed it or because they were
compacted, it reads the whole log.

The head of a bucket is small and read on its own: it holds the sources' watermarks, and whether
there is any key for which a watermark could matter. Which keys these are, and from which time on,
is stored like a state, so that a watermark need not visit all the others.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import msgspec

from cutwater.spark.state.cache import COPIES_LIMIT, CachedState, StateCache
from cutwater.spark.state.changelog import (
    ENTRY_COST,
    PART_COST,
    ChangelogEntry,
    EntryWriter,
    Head,
    StateStore,
)
from cutwater.spark.state.map import StateMap
from cutwater.spark.state.table import Convert, StateColumns, StateTable

__all__ = ["BUSY", "INPUT", "SMALLEST_LOG", "SMALL_STATE", "BucketStates", "StateStore"]

SMALLEST_LOG = 64 << 10
"""A log with fewer stale bytes is not compacted."""
SMALL_STATE = 4 << 10
"""States with fewer bytes are rewritten as a whole rather than compacted entry by entry."""

BUSY = "\x00busy "
"""Prefix of a step's name: the keys of its segment for which a watermark can matter, each with the
least watermark that does, encoded; empty: any watermark."""

INPUT = "\x00input "
"""Prefix of the number of an input epoch and a step's name: states that end with that epoch."""

_cache = StateCache()
"""The states that this worker caches."""


class BucketStates:
    """The states of one bucket during one epoch."""

    def __init__(
        self,
        store: StateStore,
        query_id: str,
        level: int,
        label: int,
        limit: int = COPIES_LIMIT,
    ) -> None:
        self._store = store
        self._address = (query_id, level, label)
        self.label = label
        self._limit = limit
        self._head = store.head()
        self._loaded: CachedState | None = None
        self._live_before = 0

    @property
    def busy(self) -> int:
        """The number of keys for which a watermark can matter, at the start of the epoch."""
        return self._head.busy

    @property
    def watermarks(self) -> dict[str, bytes]:
        """The watermark of each source, encoded, as last sent to the bucket."""
        return dict(self._head.watermarks)

    def get(self, step: str, key: bytes) -> bytes | None:
        """The encoded state of a key; None if it has none."""
        return self.states_of(step).get(key)

    def keys(self, step: str) -> Collection[bytes]:
        """The keys that have a state."""
        return self.states_of(step).keys()

    def items(self, step: str) -> Collection[tuple[bytes, bytes]]:
        """The keys that have a state, with their encoded states."""
        return self.states_of(step).items()

    def names(self, prefix: str) -> list[str]:
        """The names with this prefix under which states are stored."""
        return [name for name in self._copy.steps if name.startswith(prefix)]

    def states_of(self, step: str) -> dict[bytes, bytes]:
        """A live, read-only view of the encoded states by key."""
        return self._map(step).states

    def put(self, step: str, key: bytes, state: bytes | None) -> None:
        """Change the encoded state of a key; None deletes it."""
        self._map(step).put(key, state)

    def put_many(self, step: str, keys: Sequence[bytes], states: Sequence[bytes | None]) -> None:
        """Change the encoded states of many keys; for a repeated key, the last state counts."""
        self._map(step).put_many(keys, states)

    def table(self, step: str, columns: StateColumns, convert: Convert | None = None) -> StateTable:
        """The states of a step as a table, to be read and changed until the epoch is saved.

        `convert` is called if the stored table has other columns.
        """
        copy = self._copy
        kept = copy.rows(step)
        if isinstance(kept, StateTable):
            kept.fit(columns, convert)
            return kept
        opened = copy.steps[step] = kept.open(columns, convert)
        return opened

    def save(self, watermarks: dict[str, bytes] | None = None) -> None:
        """Append what changed to the log, and compact a part of the log if necessary.

        `watermarks` are the new watermarks of the sources; None: unchanged.
        """
        head = self._head
        if watermarks is not None:
            head = msgspec.structs.replace(head, watermarks=watermarks)
        if self._loaded and any(kept.has_changes for kept in self._loaded.steps.values()):
            head = self._append(head, self._loaded)
        if head != self._head:
            self._store.put_head(head)
            self._head = head
        if self._loaded:
            self._loaded.drop_empty(INPUT)
            _cache.keep(self._address, self._loaded, self._limit)

    def _append(self, head: Head, copy: CachedState) -> Head:
        """Append what changed to the log; returns the new head."""
        head = self._clean(head, copy)
        writer = EntryWriter(head.next)
        for kept in copy.steps.values():
            kept.write_to(writer)
        token, total = os.urandom(16), head.total
        for sequence, parts in enumerate(writer.entries, head.next):
            total += self._store.put_entry(sequence, ChangelogEntry(token, copy.token, parts))
            copy.token, copy.next = token, sequence + 1
        self._live_before = copy.live
        busy = sum(len(kept) for step, kept in copy.steps.items() if step.startswith(BUSY))
        return msgspec.structs.replace(
            head, token=copy.token, next=copy.next, total=total, live=copy.live, busy=busy
        )

    def _clean(self, head: Head, copy: CachedState) -> Head:
        """Remove the oldest entries, after marking what is current in them to be written again.

        Removes up to twice the bytes that this epoch appends, plus four times those by which the
        states shrank: with less, the log could outgrow any multiple of the states.
        """
        appended = ENTRY_COST + sum(
            len(step) + PART_COST + kept.changed_bytes
            for step, kept in copy.steps.items()
            if kept.has_changes
        )
        live, first, total = copy.live, head.first, head.total
        most = 2 * live + SMALLEST_LOG - appended
        if total <= most:
            return msgspec.structs.replace(head, credit=0)
        credit = head.credit + 2 * appended + 4 * max(0, self._live_before - live)
        if live <= max(credit, SMALL_STATE):
            for kept in copy.steps.values():
                kept.keep_all()
            self._store.clear()
            return msgspec.structs.replace(head, first=head.next, total=0, credit=0)
        while credit > 0 and total > most and first < head.next:
            entry, cost = self._store.entry(first)
            copy.keep(entry, first)
            self._store.remove_entry(first)
            first, total, credit = first + 1, total - cost, credit - cost
        credit = min(credit, 0)  # unused budget is not saved up for one large compaction
        return msgspec.structs.replace(head, first=first, total=total, credit=credit)

    def _map(self, step: str) -> StateMap:
        kept = self._copy.steps.get(step)
        return kept if type(kept) is StateMap else self._copy.map(step)

    @property
    def _copy(self) -> CachedState:
        """All states; loaded on first access."""
        if self._loaded is None:
            self._loaded = self._load()
            self._live_before = self._loaded.live
        return self._loaded

    def _load(self) -> CachedState:
        copy = _cache.evict(self._address)
        if copy and (copy.token == self._head.token or self._caught_up(copy)):
            return copy
        copy = CachedState.of(self._store.entries(self._head))
        copy.token, copy.next = self._head.token, self._head.next
        return copy

    def _caught_up(self, copy: CachedState) -> bool:
        """Bring a cached copy up to date; False if the log does not continue it."""
        if not self._head.first <= copy.next < self._head.next:
            return False
        for sequence in range(copy.next, self._head.next):
            entry, _ = self._store.entry(sequence)
            if entry.previous != copy.token:
                return False
            copy.apply(entry, sequence)
        return True
