"""Which files a source has read, in which epoch and in which order: a durable log of chunks.

Files are numbered in the order in which they were first seen, so a number and a byte offset give
every line a position that never changes. An entry is written before Spark may log the offset
that names it; an entry that no offset names (a crash came between) is the next epoch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cutwater.errors import InputError, Problem
from cutwater.spark.clock import Clock, SourceClock, lines_of
from cutwater.spark.entrylog import EntryLog

__all__ = ["Chunk", "FileLog", "files_in", "split_at_lines"]


@dataclass(frozen=True)
class Chunk:
    """A run of whole lines in a file, and what the file was when it was first seen."""

    number: int
    """The file's place among all files of the source."""
    path: str
    size: int
    modified_ns: int
    start: int
    end: int
    newest_before: Any = None
    """The newest time of the source before this epoch, if it has a clock."""
    newest_after: Any = None
    """The newest time of the source once this epoch is read."""
    first: int = 0
    """The number of its first record, if the records of the source are numbered."""
    planned: float | None = None
    """When its epoch was planned, in seconds of the wall clock."""

    @property
    def is_decision(self) -> bool:
        """Does it read nothing, and only say that the source followed others?"""
        return self.start == self.end

    def check_unchanged(self) -> None:
        """Raise `InputError` if the file is not what it was when it was first seen."""
        try:
            now = Path(self.path).stat()
        except OSError as error:
            raise InputError(
                Problem(
                    "unreadable-file",
                    f"{self.path} cannot be read: {error.strerror}",
                    "put it back, or start with a new checkpoint; files stay until they are read",
                )
            ) from None
        if (now.st_size, now.st_mtime_ns) != (self.size, self.modified_ns):
            raise InputError(
                Problem(
                    "changed-file",
                    f"{self.path} has changed since it was first seen ({self.size} bytes then, "
                    f"{now.st_size} now); a file of a source does not change once it is there",
                    "write files elsewhere and move them in when they are complete",
                )
            )


class FileLog:
    """The log of one source; entries count from 1."""

    def __init__(
        self,
        folder: Path,
        log: Path,
        clock: SourceClock | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._now = now
        self._folder = folder
        log.mkdir(parents=True, exist_ok=True)
        self._began = log.stat().st_mtime
        self._seen: set[str] = set()
        self._log = EntryLog(log, "the log of files", self._note)
        self._last = self.read(self.newest)[-1] if self.newest else None

    def _note(self, chunks: list[dict[str, Any]]) -> None:
        """Remember the names of files, and no more: every name is read once."""
        self._seen.update(chunk["path"] for chunk in chunks)

    @property
    def newest(self) -> int:
        """The number of the newest entry."""
        return self._log.newest

    def read(self, number: int) -> list[Chunk]:
        """The chunks of an entry."""
        return [Chunk(**chunk) for chunk in self._log.read(number)]

    def unread(self) -> list[str]:
        """The files that no entry has taken yet, by name."""
        return [path for path in files_in(self._folder) if path not in self._seen]

    def has_input(self) -> bool:
        """Is there a file that no entry has taken yet and that is not empty?"""
        return any(_size(path) for path in self.unread())

    def extend(self, files: Iterable[str], max_bytes: int) -> int:
        """Take up to `max_bytes` of what is unread into a new entry; the newest entry's number."""
        chunks: list[Chunk] = []
        left = max_bytes
        for chunk in self._candidates(files):
            if left <= 0:
                break
            end = split_at_lines(chunk.path, chunk.start, chunk.end, left)
            if end > chunk.start:
                chunks.append(Chunk(**{**vars(chunk), "end": end}))
                left -= end - chunk.start
                self._seen.add(chunk.path)
        if chunks:
            planned = self._now()
            self._append([replace(chunk, planned=planned) for chunk in self._timed(chunks)])
        return self.newest

    def quiet_since(self) -> float:
        """When there was new input last, in seconds of the wall clock; else when the log began."""
        planned = self._last.planned if self._last else None
        return self._began if planned is None else planned

    def follow(self, mark: Any) -> int:
        """Let the source complete what others have; the newest entry's number.

        The entry reads nothing. There is none if the source has completed as much by itself.
        """
        last = self._last or Chunk(-1, "", 0, 0, 0, 0)
        before = last.newest_after
        after = self._clock.following(before, mark) if isinstance(self._clock, Clock) else None
        if after is not None:
            decision = replace(last, start=last.end, newest_before=before, newest_after=after)
            self._append([decision])
        return self.newest

    def _append(self, chunks: list[Chunk]) -> None:
        self._log.append([vars(chunk) for chunk in chunks])
        self._last = chunks[-1]

    def _timed(self, chunks: list[Chunk]) -> list[Chunk]:
        before = after = self._last.newest_after if self._last else None
        if self._clock is None:  # a later run may ask for times again
            return [replace(chunk, newest_before=before, newest_after=after) for chunk in chunks]
        numbered = []
        for chunk in chunks:
            numbered.append(replace(chunk, first=self._clock.first(after)))
            after = self._clock.newest(after, lines_of(chunk.path, chunk.start, chunk.end))
        return [replace(chunk, newest_before=before, newest_after=after) for chunk in numbered]

    def _candidates(self, files: Iterable[str]) -> Iterable[Chunk]:
        last = self._last
        if last and last.end < last.size:
            last.check_unchanged()
            yield Chunk(**{**vars(last), "start": last.end, "end": last.size})
        number = last.number if last else -1
        for path in files:
            number += 1
            try:
                found = Path(path).stat()
            except FileNotFoundError:  # taken away before it was read
                continue
            yield Chunk(number, path, found.st_size, found.st_mtime_ns, 0, found.st_size)


def files_in(folder: Path) -> list[str]:
    """The files of a source, by name; names that begin with a dot or underscore do not count."""
    with os.scandir(folder) as found:
        return sorted(e.path for e in found if e.name[0] not in "._" and e.is_file())


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:  # taken away before it was read
        return 0


def split_at_lines(path: str, start: int, end: int, size: int) -> int:
    """The first end of a line at or after ``start + size``, or `end`."""
    if start + size >= end:
        return end
    with Path(path).open("rb") as file:
        file.seek(start + size - 1)
        file.readline()
        return min(file.tell(), end)
