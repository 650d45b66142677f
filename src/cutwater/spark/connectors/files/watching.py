"""Looking at a folder again and again, without looking at every file each time.

A folder is listed anew only if its own time says that names came or went. The files that are known
are gone round: each is looked at within a stated time, the newest ones at every poll.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Container, Iterator
from itertools import chain
from pathlib import Path

__all__ = ["FolderWatch", "RollingLook", "files_in"]

_RECENT = 64
"""So many of the newest files are looked at in every poll: those are the ones that change."""
_GRAIN_S = 2.0
"""The coarsest clock of a file system in use: within it two changes may have the same time."""


def files_in(folder: str, known: Container[str] = ()) -> list[str]:
    """The files of a source that are not known, by name; a dot or underscore in front hides one."""
    with os.scandir(folder) as found:
        new = (e for e in found if e.name[0] not in "._" and e.path not in known)
        return sorted(entry.path for entry in new if entry.is_file())


class FolderWatch:
    """Lists a folder, if it may have changed since it was listed last."""

    def __init__(self, folder: str, within: float, now: Callable[[], float]) -> None:
        self._folder = folder
        self._within = within
        self._now = now
        self._modified_ns = -1
        self._listed = 0.0
        self._found: set[str] = set()
        self._is_settled = False
        self._is_dated = True
        """Does the time of the folder tell that a name came? Some mounts keep none."""

    def news(self, known: Container[str]) -> list[str] | None:
        """The files that are not known, by name; None if the folder is as it was.

        A time that is younger than the file system's clock is fine does not count: a name may
        still come at the same time. And once in a while the folder is listed whatever its time is.
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
    """Goes round the files that are known, so that each has its turn within a stated time."""

    def __init__(self, within: float, now: Callable[[], float]) -> None:
        self._within = within
        self._now = now
        self._last = now()
        self._files: list[str] = []
        self._recent: deque[str] = deque(maxlen=_RECENT)
        self._next = 0
        self._owed = 0.0

    def add(self, path: str) -> None:
        """Look at a file too, from now on."""
        self._files.append(path)
        self._recent.append(path)

    def favour(self, path: str) -> None:
        """Look at a file in every poll for some time: it has changed."""
        if path not in self._recent:
            self._recent.append(path)

    def all(self) -> list[str]:
        """Every file."""
        return list(self._files)

    def due(self) -> list[str]:
        """The files to look at now: the recent ones, and as many others as the time asks for."""
        now = self._now()
        elapsed, self._last = min(max(now - self._last, 0.0), self._within), now
        self._owed += len(self._files) * elapsed / self._within
        count = min(int(self._owed), len(self._files))
        self._owed = min(self._owed - count, 1.0)
        return list(chain(self._recent, self._round(count)))

    def _round(self, count: int) -> Iterator[str]:
        for _ in range(count):
            self._next = self._next % len(self._files)
            yield self._files[self._next]
            self._next += 1
