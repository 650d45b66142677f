"""Watches a folder without a stat of every file at each poll.

A folder is listed again only if its modification time says that names were added or removed. Known
files are checked in turn: each within a given time, the newest ones at every poll.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Container, Iterator
from itertools import chain
from pathlib import Path

__all__ = ["FolderWatch", "RollingLook", "files_in"]

_RECENT = 64
"""How many of the newest files are checked at every poll: growing files are new ones."""
_GRAIN_S = 2.0
"""The coarsest timestamp of file systems in use: two changes within it may have the same time."""


def files_in(folder: str, known: Container[str] = ()) -> list[str]:
    """The files that are not `known`, by name; a leading dot or underscore hides a file."""
    with os.scandir(folder) as found:
        new = (e for e in found if e.name[0] not in "._" and e.path not in known)
        return sorted(entry.path for entry in new if entry.is_file())


class FolderWatch:
    """Lists a folder if it may have changed since the last listing."""

    def __init__(self, folder: str, within: float, now: Callable[[], float]) -> None:
        self._folder = folder
        self._within = within
        self._now = now
        self._modified_ns = -1
        self._listed = 0.0
        self._found: set[str] = set()
        self._is_settled = False
        self._is_dated = True
        """Does a new name change the folder's modification time? On some mounts it does not."""

    def news(self, known: Container[str]) -> list[str] | None:
        """The files that are not `known`, by name; None if the folder has not changed.

        A modification time that is more recent than the granularity of the file system is not
        trusted: another name may still be added at the same time. And after `within` seconds the
        folder is listed in any case.
        """
        modified_ns, now = Path(self._folder).stat().st_mtime_ns, self._now()
        is_same = self._is_settled and modified_ns == self._modified_ns
        if is_same and self._is_dated and 0 <= now - self._listed < self._within:
            return None
        found = files_in(self._folder, known)
        if is_same and not self._found.issuperset(found):
            self._is_dated = False
        self._modified_ns, self._listed, self._found = modified_ns, now, set(found)
        self._is_settled = now - modified_ns / 1e9 > _GRAIN_S
        return found


class RollingLook:
    """Checks the known files in turn, each within a given time."""

    def __init__(self, within: float, now: Callable[[], float]) -> None:
        self._within = within
        self._now = now
        self._last = now()
        self._files: list[str] = []
        self._recent: deque[str] = deque(maxlen=_RECENT)
        self._next = 0
        self._due = 0.0
        """How many checks are due; a fraction is carried to the next poll."""

    def add(self, path: str) -> None:
        """Include a file from now on."""
        self._files.append(path)
        self._recent.append(path)

    def favour(self, path: str) -> None:
        """Check a changed file at every poll until enough others have changed since."""
        if path not in self._recent:
            self._recent.append(path)

    def all(self) -> list[str]:
        """Every file."""
        return list(self._files)

    def due(self) -> list[str]:
        """The files to check now: the recent ones, and others in proportion to the elapsed time."""
        now = self._now()
        elapsed, self._last = min(max(now - self._last, 0.0), self._within), now
        self._due += len(self._files) * elapsed / self._within
        count = min(int(self._due), len(self._files))
        self._due = min(self._due - count, 1.0)
        return list(chain(self._recent, self._round(count)))

    def _round(self, count: int) -> Iterator[str]:
        for _ in range(count):
            self._next = self._next % len(self._files)
            yield self._files[self._next]
            self._next += 1
