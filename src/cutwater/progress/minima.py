"""The minimal times of a multiset that changes, and how they change with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cutwater.progress.summaries import IDENTITY, Summary

__all__ = ["Minima"]


class Minima:
    """A multiset of times and its minimal ones.

    Changes are collected and then applied together: those that cancel out lead to nothing more.
    """

    __slots__ = ("counts", "elements", "pending")

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}
        """Positive; of all times, not only the minimal ones."""
        self.elements: list[Any] = []
        """The minimal times."""
        self.pending: dict[Any, int] = {}
        """Changes that are not in the counts yet."""

    def add(self, time: Any, change: int) -> None:
        """Collect a change of how often a time is there."""
        self.pending[time] = self.pending.get(time, 0) + change

    def add_along(self, summaries: tuple[Summary, ...], changes: list[tuple[Any, int]]) -> None:
        """Collect what changes elsewhere mean here."""
        pending = self.pending
        for summary in summaries:
            for time, change in changes:
                there = time if summary is IDENTITY else summary(time)
                pending[there] = pending.get(there, 0) + change

    def settle(self) -> list[tuple[Any, int]]:
        """Apply what is pending; the minimal times that came (1) and went (-1)."""
        if not self.pending:
            return []
        came, is_lost = self._count()
        if not (came or is_lost):
            return []
        before = self.elements
        # What a lost minimum covered is any of the times; what came can only displace.
        candidates = self.counts if is_lost else (*before, *came)
        self.elements = _minimal_of(candidates)
        gone = [(time, -1) for time in before if time not in self.elements]
        return gone + [(time, 1) for time in self.elements if time not in before]

    def _count(self) -> tuple[list[Any], bool]:
        came: list[Any] = []
        is_lost = False
        for time, change in self.pending.items():
            if not change:
                continue
            count = self.counts.get(time, 0) + change
            if count:
                if count == change:
                    came.append(time)
                self.counts[time] = count
            else:
                del self.counts[time]
                is_lost = is_lost or time in self.elements
        self.pending = {}
        return came, is_lost


def _minimal_of(times: Iterable[Any]) -> list[Any]:
    """The minimal ones of distinct times."""
    found: list[Any] = []
    for time in times:
        for other in found:
            if other <= time:
                break
        else:
            if found:
                found = [other for other in found if not time <= other]
            found.append(time)
    return found
