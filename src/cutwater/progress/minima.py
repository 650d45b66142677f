"""The minimal times of a multiset that changes, and how they change with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cutwater.progress.summaries import IDENTITY, Summary

__all__ = ["Changes", "Entry", "Minima"]

Changes = Sequence[tuple[Any, int]]
"""Times that came (1) and went (-1)."""


class Entry:
    """A time and what is known of it.

    To hash and compare a time runs Python code where times are products, so it is done once to
    find the entry, and not again for each thing that is kept.
    """

    __slots__ = ("change", "count", "is_pending", "live", "time")

    def __init__(self, time: Any) -> None:
        self.time = time
        self.live = 0
        """How many pointstamps there are at this time; that there are some is one reason."""
        self.count = 0
        """How many reasons there are for the time to be in the multiset; not negative."""
        self.change = 0
        """What is to be added to the count."""
        self.is_pending = False


class Minima:
    """A multiset of times and its minimal ones.

    Changes are collected and then applied together: those that cancel out lead to nothing more.
    """

    __slots__ = ("entries", "minimal", "pending")

    def __init__(self) -> None:
        self.entries: dict[Any, Entry] = {}
        """Of all times, not only the minimal ones."""
        self.minimal: list[Entry] = []
        self.pending: list[Entry] = []
        """Those whose changes are not in their counts yet."""

    @property
    def elements(self) -> list[Any]:
        """The minimal times."""
        return [entry.time for entry in self.minimal]

    def add(self, time: Any, change: int) -> Entry:
        """Collect a change of how often a time is there."""
        entry = self.entries.get(time)
        if entry is None:
            entry = self.entries[time] = Entry(time)
        entry.change += change
        if not entry.is_pending:
            entry.is_pending = True
            self.pending.append(entry)
        return entry

    def add_along(self, summaries: tuple[Summary, ...], changes: Changes) -> None:
        """Collect what changes elsewhere mean here."""
        for summary in summaries:
            for time, change in changes:
                self.add(time if summary is IDENTITY else summary(time), change)

    def settle(self) -> Changes:
        """Apply what is pending; the minimal times that came (1) and went (-1)."""
        before, is_lost = self.minimal, False
        came: list[Entry] = []
        for entry, change in self.counted():
            if change < 0:
                is_lost = is_lost or entry in before
                continue
            for other in before:
                if other.time <= entry.time:
                    break
            else:
                came.append(entry)
        if is_lost:
            # What a lost minimum covered is any of the times.
            self.minimal = _minimal_of(self.entries.values())
        elif came:
            # What came can only displace.
            self.minimal = _minimal_of((*before, *came))
        else:
            return ()
        gone = [(entry.time, -1) for entry in before if entry not in self.minimal]
        return gone + [(entry.time, 1) for entry in self.minimal if entry not in before]

    def counted(self) -> list[tuple[Entry, int]]:
        """Apply what is pending; all times that came (1) and went (-1)."""
        found = []
        for entry in self.pending:
            entry.is_pending = False
            change, entry.change = entry.change, 0
            entry.count += change
            if not entry.count:
                del self.entries[entry.time]
                if change:
                    found.append((entry, -1))
            elif entry.count == change:
                found.append((entry, 1))
        self.pending = []
        return found


def _minimal_of(entries: Iterable[Entry]) -> list[Entry]:
    found: list[Entry] = []
    for entry in entries:
        time = entry.time
        for other in found:
            if other.time <= time:
                break
        else:
            if found:
                found = [other for other in found if not time <= other.time]
            found.append(entry)
    return found
