"""Caches the states of buckets in a worker process between epochs, within a memory limit."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from cutwater.spark.state.changelog import ChangelogEntry, RowsPart
from cutwater.spark.state.map import StateMap
from cutwater.spark.state.table import StateKindChanged, StateTable, UnopenedTable

__all__ = ["COPIES_LIMIT", "BucketAddress", "CachedState", "Kept", "StateCache"]

COPIES_LIMIT = 1 << 30
"""The most bytes that a worker process caches; the bucket in use comes on top."""

BucketAddress = tuple[str, int, int]
"""Query, level, label."""

Kept = StateMap | StateTable | UnopenedTable
"""The states of one step."""


@dataclass
class CachedState:
    """The states of a bucket after some entry of its changelog."""

    token: bytes = b""
    """The token of that entry."""
    next: int = 0
    """The number of the entry that would come next."""
    steps: dict[str, Kept] = field(default_factory=dict)

    @property
    def live(self) -> int:
        """The bytes of keys and states."""
        return sum(kept.live for kept in self.steps.values())

    @property
    def memory(self) -> int:
        """The approximate memory in bytes."""
        return sum(kept.memory for kept in self.steps.values())

    @staticmethod
    def of(entries: Iterable[tuple[int, ChangelogEntry]]) -> CachedState:
        """The states after all entries of a log."""
        copy = CachedState()
        for sequence, entry in entries:
            for part in entry.parts:
                if isinstance(part, RowsPart):
                    copy.rows(part.step).apply(part, sequence)
                else:
                    copy.map(part.step).fill(part, sequence)
        for kept in copy.steps.values():
            if isinstance(kept, StateMap):
                kept.filled()
        return copy

    def apply(self, entry: ChangelogEntry, sequence: int) -> None:
        """Apply the next entry of the log."""
        for part in entry.parts:
            if isinstance(part, RowsPart):
                self.rows(part.step).apply(part, sequence)
            else:
                self.map(part.step).apply(part, sequence)
        self.token, self.next = entry.token, sequence + 1

    def keep(self, entry: ChangelogEntry, sequence: int) -> None:
        """Mark what is current in an entry to be written again: the entry will be removed."""
        for part in entry.parts:
            kept = self.steps.get(part.step)  # None if all of it was deleted
            if kept and isinstance(part, RowsPart) != isinstance(kept, StateMap):
                kept.keep(part, sequence)  # type: ignore[arg-type]

    def drop_empty(self, prefix: str) -> None:
        """Drop steps with this prefix that have no states any more: else they would accumulate."""
        for step in [s for s, kept in self.steps.items() if s.startswith(prefix) and not kept]:
            del self.steps[step]

    def map(self, step: str) -> StateMap:
        """The states of a step by key; raises `StateKindChanged` if it has a table."""
        kept = self.steps.get(step)
        if isinstance(kept, StateMap):
            return kept
        if kept is not None and (len(kept) or kept.has_changes):
            raise StateKindChanged(f"step '{step}' keeps a table, not states by key")
        made = self.steps[step] = StateMap(step)
        return made

    def rows(self, step: str) -> StateTable | UnopenedTable:
        """The table of a step, opened or not; raises `StateKindChanged` if it has states by key."""
        kept = self.steps.get(step)
        if isinstance(kept, StateTable | UnopenedTable):
            return kept
        if kept is not None and (len(kept) or kept.has_changes):
            raise StateKindChanged(f"step '{step}' keeps states by key, not a table")
        made = self.steps[step] = UnopenedTable(step)
        return made


class StateCache:
    """The cached states of one worker process.

    Eviction is random: a worker visits its buckets in turn, so the least recently used one is
    exactly the one that is needed next.
    """

    def __init__(self) -> None:
        self._entries: dict[BucketAddress, CachedState] = {}
        self._bytes: dict[BucketAddress, int] = {}
        self._random = random.Random(0)

    @property
    def bytes(self) -> int:
        """The approximate memory of all cached states in bytes."""
        return sum(self._bytes.values())

    def evict(self, address: BucketAddress) -> CachedState | None:
        """Remove and return the states of a bucket; None if they are not cached."""
        self._bytes.pop(address, None)
        return self._entries.pop(address, None)

    def keep(self, address: BucketAddress, copy: CachedState, limit: int) -> None:
        """Cache the states of a bucket unless they exceed the limit; may evict others."""
        size = copy.memory
        if size > limit:
            return
        while self._bytes and self.bytes + size > limit:
            self.evict(self._random.choice(list(self._bytes)))
        self._entries[address], self._bytes[address] = copy, size
