"""The minimal times of a changing multiset, maintained incrementally."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cutwater.progress.summaries import IDENTITY, Summary

__all__ = ["CountChanges", "Minima", "TimeCounts"]

CountChanges = Sequence[tuple[Any, int]]
"""Times that were added (1) and removed (-1)."""


class TimeCounts:
    """A time and its counts.

    Hashing and comparing a time runs Python code where times are products, so it is done once, to
    find the entry, and not once for each of its counts.
    """

    __slots__ = ("change", "count", "is_pending", "live", "time")

    def __init__(self, time: Any) -> None:
        self.time = time
        self.live = 0
        """The number of pointstamps at this time; any at all contribute 1 to `count`."""
        self.count = 0
        """The multiplicity of the time in the multiset; never negative."""
        self.change = 0
        """The pending change of the count."""
        self.is_pending = False


class Minima:
    """A multiset of times and its minimal ones.

    Changes are collected and then applied together; those that cancel out have no effect.
    """

    __slots__ = ("entries", "minimal", "pending")

    def __init__(self) -> None:
        self.entries: dict[Any, TimeCounts] = {}
        """Entries of all times, not only the minimal ones."""
        self.minimal: list[TimeCounts] = []
        self.pending: list[TimeCounts] = []
        """Entries whose changes are not yet applied to their counts."""

    @property
    def elements(self) -> list[Any]:
        """The minimal times."""
        return [entry.time for entry in self.minimal]

    def add(self, time: Any, change: int) -> TimeCounts:
        """Record a change in the multiplicity of a time."""
        entry = self.entries.get(time)
        if entry is None:
            entry = self.entries[time] = TimeCounts(time)
        entry.change += change
        if not entry.is_pending:
            entry.is_pending = True
            self.pending.append(entry)
        return entry

    def add_along(self, summaries: tuple[Summary, ...], changes: CountChanges) -> None:
        """Record changes at another location, mapped by the summaries of the paths to here."""
        for summary in summaries:
            for time, change in changes:
                self.add(time if summary is IDENTITY else summary(time), change)

    def settle(self) -> CountChanges:
        """Apply pending changes; returns the minimal times that were added (1) and removed (-1)."""
        before, is_lost = self.minimal, False
        came: list[TimeCounts] = []
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
            # A lost minimum may have covered any of the times.
            self.minimal = _minimal_of(self.entries.values())
        elif came:
            # Additions can only displace minima.
            self.minimal = _minimal_of((*before, *came))
        else:
            return ()
        gone = [(entry.time, -1) for entry in before if entry not in self.minimal]
        return gone + [(entry.time, 1) for entry in self.minimal if entry not in before]

    def counted(self) -> list[tuple[TimeCounts, int]]:
        """Apply pending changes; returns all times that were added (1) and removed (-1)."""
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


def _minimal_of(entries: Iterable[TimeCounts]) -> list[TimeCounts]:
    found: list[TimeCounts] = []
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
