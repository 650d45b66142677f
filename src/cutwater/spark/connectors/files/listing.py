"""Folders of files as sources: which files there are, in which order, and that they do not change.

Files are numbered in the order in which they were first seen, so a number and a position in the
file give every record a place that never changes.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

from cutwater.errors import InputError, Problem
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.source import Chunk, Feed, Planner, Replay
from cutwater.spark.connectors.files.changes import (
    cannot_be_read,
    changed,
    check_unchanged,
    state_of,
)
from cutwater.spark.connectors.files.watching import FolderWatch, RollingLook, files_in
from cutwater.spark.storage.local_paths import is_url, not_local

__all__ = ["FilesFeed", "FilesPlanner"]


class FilesFeed(Feed):
    """A folder of files: each appears whole, and does not change after unless files grow."""

    path: str
    max_bytes_per_epoch: int
    grows: bool
    """Are files appended to after they were read? Then what is new is read on."""
    recheck_every: float
    """Every file that was read is looked at again within so many seconds."""
    max_rows_per_epoch: int
    max_files_per_epoch: int

    pieces: ClassVar[str] = "files"
    unit: ClassVar[str] = "bytes"
    smallest_share: ClassVar[int] = 64 << 10

    @abstractmethod
    def whole(self, path: str, found: os.stat_result, number: int, tp: Any) -> Chunk:
        """A file that is seen for the first time, from its first record to its end.

        Raises `InputError` if it cannot hold records of the type.
        """

    @abstractmethod
    def within_rows(self, chunk: Chunk, rows: int) -> tuple[Chunk, int]:
        """The beginning of a chunk that has about so many rows at the most; and how many it has."""

    def end_of(self, chunk: Chunk) -> Any:
        """Where the file of a chunk ends, as far as it can be read."""
        return chunk.about["size"]

    def grown(self, last: Chunk, found: os.stat_result) -> Chunk:
        """The last chunk of a file that has changed, with what its file is now.

        Raises `InputError` if the file did not only grow, or must not.
        """
        path, size = last.about["path"], last.about["size"]
        raise InputError(changed(path, size, found.st_size, grows=self.grows))

    def absolute(self) -> Self:
        """With the path from the root."""
        return replace(self, path=str(Path(self.path).absolute()))  # type: ignore[type-var]

    def problems(self, name: str, step: Source) -> Iterator[Problem]:
        if is_url(self.path):
            yield not_local(f"the folder of source '{name}'", self.path)
        elif not Path(self.path).is_dir():
            yield Problem(
                "missing-folder",
                f"source '{name}' reads {self.path}, which is no folder",
                "create it, or correct the path",
            )
        for what in ("bytes", "rows", "files"):
            limit = f"max_{what}_per_epoch"
            if getattr(self, limit) < 1:
                yield Problem(
                    "no-progress",
                    f"source '{name}' may read {getattr(self, limit)} {what} in an epoch; "
                    "an epoch reads at least one",
                    f"leave {limit} out, or make it larger",
                )
        if not self.recheck_every > 0:
            yield Problem(
                "not-a-duration",
                f"recheck_every of source '{name}' is {self.recheck_every}; it is a number of "
                "seconds larger than 0",
                "leave recheck_every out for a minute",
            )

    def why_empty(self) -> str | None:
        return None if files_in(self.path) else f"{self.path} has no files"

    def replay(self) -> Replay:
        return Replay(
            True,
            "the checkpoint says which part of which file each epoch read",
            "files stay where they are, unchanged, until they are read; a file that changed is "
            "refused" + (", and one that grew is read on" if self.grows else ""),
        )

    def planner(self, tp: Any, now: Callable[[], float]) -> Planner:
        return FilesPlanner(self, tp, now)

    @classmethod
    def piece(cls, chunk: Chunk) -> str:
        return str(chunk.about.get("path", ""))


class FilesPlanner(Planner):
    """Plans what is left of files that were begun, then new files by name.

    Files that are known are looked at in turns, so that none changes unnoticed.
    """

    def __init__(self, feed: FilesFeed, tp: Any, now: Callable[[], float]) -> None:
        self._feed = feed
        self._type = tp
        self._read: dict[str, tuple[int, int]] = {}
        """Size and time of each file of which something was noted."""
        self._empty: dict[str, tuple[int, int] | None] = {}
        """Size and time of files that hold nothing; None if one is to be looked into again."""
        self._rest: dict[str, Chunk] = {}
        """The last chunks of files that are not read to their end."""
        self._growing: dict[str, Chunk] = {}
        """The last chunk of each file, if files grow."""
        self._last = self._newest = -1
        """The number of the file that was read last, and of the one that was seen last."""
        self._folder = FolderWatch(feed.path, feed.recheck_every, now)
        self._look = RollingLook(feed.recheck_every, now)
        self._unread: list[str] = []
        self._until: set[str] | None = None

    def note(self, chunk: Chunk) -> None:
        path = chunk.about["path"]
        if path not in self._read and path not in self._empty:
            self._look.add(path)
        self._empty.pop(path, None)
        self._read[path] = chunk.about["size"], chunk.about["modified_ns"]
        self._keep(chunk)
        self._last, self._newest = chunk.number, max(chunk.number, self._newest)

    def _keep(self, chunk: Chunk) -> None:
        """Remember the last chunk of a file, as far as there may be more to read."""
        path = chunk.about["path"]
        if self._feed.grows:
            self._growing[path] = chunk
        if chunk.end != self._feed.end_of(chunk):
            self._rest[path] = chunk
        else:
            self._rest.pop(path, None)

    def freeze(self) -> None:
        """Look at every file at once: such a run may end before each had its turn."""
        self._look_at(self._look.all())
        self._until = set(self.unread())

    def unread(self) -> list[str]:
        """The files of which nothing was noted yet, by name."""
        news = self._folder.news(self._read)
        found = self._unread if news is None else news
        self._unread = [path for path in found if path not in self._read]
        return [path for path in self._unread if self._empty.get(path) is None]

    def has_input(self) -> bool:
        return any(True for _ in self._candidates(self.unread()))

    def take(self) -> list[Chunk]:
        self._look_at(self._look.due())
        chunks: list[Chunk] = []
        left, rows = self._feed.max_bytes_per_epoch, self._feed.max_rows_per_epoch
        files = [path for path in self.unread() if self._until is None or path in self._until]
        for chunk in self._candidates(files):
            if left <= 0 or rows <= 0 or len(chunks) == self._feed.max_files_per_epoch:
                break
            part = replace(chunk, end=self._feed.cut(chunk, left))
            part, count = self._feed.within_rows(part, rows)
            chunks.append(part)
            left -= self._feed.amount(part)
            rows -= count
        return sorted(chunks, key=lambda chunk: chunk.number)

    def _look_at(self, files: list[str]) -> None:
        """See that files are what they were, or what has become of them."""
        for path in files:
            try:
                found = Path(path).stat()
            except OSError:  # what was read may go
                continue
            if path in self._empty:
                if self._empty[path] != state_of(found):
                    self._empty[path] = None
                    self._look.favour(path)
            elif self._read.get(path, state_of(found)) != state_of(found):
                self._change(path, found)

    def _change(self, path: str, found: os.stat_result) -> None:
        if path not in self._growing:
            size = self._read[path][0]
            raise InputError(changed(path, size, found.st_size))
        if self._until is None:  # else what comes now is for the next run
            try:
                self._keep(self._feed.grown(self._growing[path], found))
            except OSError as error:
                raise cannot_be_read(path, error) from None
            self._read[path] = state_of(found)
            self._look.favour(path)

    def _candidates(self, files: list[str]) -> Iterator[Chunk]:
        """What can be read: the rest of files that were begun, in turns, then new files."""
        for last in sorted(self._rest.values(), key=lambda c: (c.number <= self._last, c.number)):
            check_unchanged(last)
            yield replace(last, start=last.end, end=self._feed.end_of(last))
        number = self._newest
        for path in files:
            chunk = self._whole(path, number + 1)
            if chunk is not None:
                number += 1
                yield chunk

    def _whole(self, path: str, number: int) -> Chunk | None:
        """A new file; None if there is nothing in it yet."""
        try:
            found = Path(path).stat()
            chunk = self._feed.whole(path, found, number, self._type)
        except FileNotFoundError:  # taken away before it was read
            return None
        except OSError as error:
            raise cannot_be_read(path, error) from None
        if chunk.start != chunk.end:
            return chunk
        if path not in self._empty:
            self._look.add(path)
        self._empty[path] = state_of(found)
        return None
