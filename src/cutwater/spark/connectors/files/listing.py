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

__all__ = ["FilesFeed", "FilesPlanner", "check_unchanged", "files_in", "unreadable"]


class FilesFeed(Feed):
    """A folder of files: each appears whole, and does not change after."""

    path: str
    max_bytes_per_epoch: int
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
        """Where the file of a chunk ends."""
        return chunk.about["size"]

    def absolute(self) -> Self:
        """With the path from the root."""
        return replace(self, path=str(Path(self.path).absolute()))  # type: ignore[type-var]

    def problems(self, name: str, step: Source) -> Iterator[Problem]:
        if not Path(self.path).is_dir():
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

    def why_empty(self) -> str | None:
        return None if files_in(Path(self.path)) else f"{self.path} has no files"

    def replay(self) -> Replay:
        return Replay(
            True,
            "the checkpoint says which part of which file each epoch read",
            "files stay where they are, unchanged, until they are read; a file that changed is "
            "refused",
        )

    def planner(self, tp: Any, now: Callable[[], float]) -> Planner:
        return FilesPlanner(self, tp)

    @classmethod
    def piece(cls, chunk: Chunk) -> str:
        return str(chunk.about.get("path", ""))


class FilesPlanner(Planner):
    """Takes files by name, and the rest of one that was begun before all others."""

    def __init__(self, feed: FilesFeed, tp: Any) -> None:
        self._feed = feed
        self._type = tp
        self._empty: dict[str, tuple[int, int]] = {}
        """Size and time of files that hold nothing; a large one need not be looked at again."""
        self._seen: set[str] = set()
        self._last: Chunk | None = None
        self._until: set[str] | None = None

    def note(self, chunk: Chunk) -> None:
        self._seen.add(chunk.about["path"])
        self._last = chunk

    def freeze(self) -> None:
        self._until = set(self.unread())

    def unread(self) -> list[str]:
        """The files of which nothing was noted yet, by name."""
        return [path for path in files_in(Path(self._feed.path)) if path not in self._seen]

    def has_input(self) -> bool:
        return any(True for _ in self._candidates(self.unread()))

    def take(self) -> list[Chunk]:
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
        return chunks

    def _candidates(self, files: list[str]) -> Iterator[Chunk]:
        last = self._last
        if last and last.end != self._feed.end_of(last):
            check_unchanged(last)
            yield replace(last, start=last.end, end=self._feed.end_of(last))
        number = last.number if last else -1
        for path in files:
            number += 1
            try:
                found = Path(path).stat()
                seen = found.st_size, found.st_mtime_ns
                if self._empty.get(path) == seen:
                    continue
                chunk = self._feed.whole(path, found, number, self._type)
            except FileNotFoundError:  # taken away before it was read
                continue
            except OSError as error:
                raise InputError(unreadable(path, error)) from None
            if chunk.start != chunk.end:
                yield chunk
            else:
                self._empty[path] = seen


def files_in(folder: Path) -> list[str]:
    """The files of a source, by name; names that begin with a dot or underscore do not count."""
    with os.scandir(folder) as found:
        return sorted(e.path for e in found if e.name[0] not in "._" and e.is_file())


def unreadable(path: str, error: OSError) -> Problem:
    """Why a file cannot be read."""
    return Problem(
        "unreadable-file",
        f"{path} cannot be read: {error.strerror or error}",
        "put it back, or start with a new checkpoint; files stay until they are read",
    )


def check_unchanged(chunk: Chunk) -> None:
    """Raise `InputError` if the file is not what it was when it was first seen."""
    path, size = chunk.about["path"], chunk.about["size"]
    try:
        now = Path(path).stat()
    except OSError as error:
        raise InputError(unreadable(path, error)) from None
    if (now.st_size, now.st_mtime_ns) != (size, chunk.about["modified_ns"]):
        raise InputError(
            Problem(
                "changed-file",
                f"{path} has changed since it was first seen ({size} bytes then, "
                f"{now.st_size} now); a file of a source does not change once it is there",
                "write files elsewhere and move them in when they are complete",
            )
        )
