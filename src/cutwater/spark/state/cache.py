"""The copies of buckets' states that a worker process keeps between epochs, within a limit."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from cutwater.spark.state.changelog import Entry, RowsPart
from cutwater.spark.state.map import StateMap
from cutwater.spark.state.table import StateKindChanged, StateTable, UnopenedTable

__all__ = ["COPIES_LIMIT", "Copies", "Copy", "Kept", "Place"]

COPIES_LIMIT = 1 << 30
"""How many bytes of copies a worker process keeps at the most; the bucket at hand comes on top."""

Place = tuple[str, int, int]
"""Query, level, label."""

Kept = StateMap | StateTable | UnopenedTable
"""What is kept of a step."""


@dataclass
class Copy:
    """The states of a bucket as they are after some entry of its log."""

    token: bytes = b""
    """Of that entry."""
    next: int = 0
    """The number of the entry that would continue it."""
    steps: dict[str, Kept] = field(default_factory=dict)

    @property
    def live(self) -> int:
        """The bytes of keys and states."""
        return sum(kept.live for kept in self.steps.values())

    @property
    def memory(self) -> int:
        """About how many bytes of memory it takes."""
        return sum(kept.memory for kept in self.steps.values())

    @staticmethod
    def of(entries: Iterable[tuple[int, Entry]]) -> Copy:
        """What all entries of a log say."""
        copy = Copy()
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

    def apply(self, entry: Entry, sequence: int) -> None:
        """Take over what the next entry says."""
        for part in entry.parts:
            if isinstance(part, RowsPart):
                self.rows(part.step).apply(part, sequence)
            else:
                self.map(part.step).apply(part, sequence)
        self.token, self.next = entry.token, sequence + 1

    def keep(self, entry: Entry, sequence: int) -> None:
        """Write again what is current in an entry, which is going to be removed."""
        for part in entry.parts:
            kept = self.steps[part.step]
            if isinstance(part, RowsPart) != isinstance(kept, StateMap):
                kept.keep(part, sequence)  # type: ignore[arg-type]

    def map(self, step: str) -> StateMap:
        """The states of an ordinary step."""
        kept = self.steps.get(step)
        if isinstance(kept, StateMap):
            return kept
        if kept is not None and (len(kept) or kept.has_changes):
            raise StateKindChanged(f"step '{step}' keeps a table, not states by key")
        made = self.steps[step] = StateMap(step)
        return made

    def rows(self, step: str) -> StateTable | UnopenedTable:
        """The table of a step, opened or not."""
        kept = self.steps.get(step)
        if isinstance(kept, StateTable | UnopenedTable):
            return kept
        if kept is not None and (len(kept) or kept.has_changes):
            raise StateKindChanged(f"step '{step}' keeps states by key, not a table")
        made = self.steps[step] = UnopenedTable(step)
        return made


class Copies:
    """The copies of one worker process.

    When there are too many, any of them goes: a worker takes its buckets in turns, so the one that
    was not used for longest is the very one that is needed next.
    """

    def __init__(self) -> None:
        self._copies: dict[Place, Copy] = {}
        self._bytes: dict[Place, int] = {}
        self._random = random.Random(0)

    @property
    def bytes(self) -> int:
        """About how many bytes of memory all copies take."""
        return sum(self._bytes.values())

    def take(self, place: Place) -> Copy | None:
        """The copy of a bucket, which is no longer kept here."""
        self._bytes.pop(place, None)
        return self._copies.pop(place, None)

    def keep(self, place: Place, copy: Copy, limit: int) -> None:
        """Keep a copy, unless it is too large; others may have to go."""
        size = copy.memory
        if size > limit:
            return
        while self._bytes and self.bytes + size > limit:
            self.take(self._random.choice(list(self._bytes)))
        self._copies[place], self._bytes[place] = copy, size
