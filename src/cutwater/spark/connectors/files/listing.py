"""Folders of files as sources: lists the files, orders them, and checks that they do not change.

Files are numbered in the order in which they were first seen. The number of its file and its
position in it order a record among all others, and never change.
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
from cutwater.spark.connectors.base.source import Chunk, Planner, Replay, SourceConnector
from cutwater.spark.connectors.files.changes import (
    cannot_be_read,
    changed,
    check_unchanged,
    file_state_of,
)
from cutwater.spark.connectors.files.watching import FolderWatch, RollingLook, files_in
from cutwater.spark.storage.local_paths import impossible, is_url, not_local

__all__ = ["FileSource", "FilesPlanner"]


class FileSource(SourceConnector):
    """A folder of files: each appears atomically, and does not change unless it `grows`."""

    path: str
    max_bytes_per_epoch: int
    grows: bool
    """Are files appended to after they were read? Then reading continues with what is new."""
    recheck_every: float
    """Seconds within which every file that was read is checked for changes again."""
    max_rows_per_epoch: int
    max_files_per_epoch: int

    partitions_noun: ClassVar[str] = "files"
    unit: ClassVar[str] = "bytes"
    min_task_weight: ClassVar[int] = 64 << 10

    @abstractmethod
    def whole_file(self, path: str, found: os.stat_result, number: int, tp: Any) -> Chunk:
        """All of a file that is seen for the first time, as one chunk.

        Raises `InputError` if it cannot hold records of the type.
        """

    @abstractmethod
    def within_rows(self, chunk: Chunk, rows: int) -> tuple[Chunk, int]:
        """The beginning of a chunk with about `rows` rows at most, and how many it has."""

    def end_of(self, chunk: Chunk) -> Any:
        """The position up to which the file of a chunk can be read."""
        return chunk.about["size"]

    def grown(self, last: Chunk, found: os.stat_result) -> Chunk:
        """The last chunk of a file that has changed, updated to the file's size and time now.

        Raises `InputError` if the file has changed in another way than growing, or must not grow.
        """
        path, size = last.about["path"], last.about["size"]
        raise InputError(changed(path, size, found.st_size, grows=self.grows))

    def absolute(self) -> Self:
        """The same source with an absolute path."""
        return replace(self, path=str(Path(self.path).absolute()))  # type: ignore[type-var]

    def problems(self, name: str, step: Source) -> Iterator[Problem]:
        characters = list(impossible(f"the folder of source '{name}'", self.path))
        if is_url(self.path):
            yield not_local(f"the folder of source '{name}'", self.path)
        elif characters:
            yield from characters
        elif not Path(self.path).is_dir():
            yield Problem(
                "missing-folder",
                f"source '{name}' reads {self.path}, which is not a folder",
                "create it, or correct the path",
            )
        for what in ("bytes", "rows", "files"):
            limit = f"max_{what}_per_epoch"
            if getattr(self, limit) < 1:
                yield Problem(
                    "no-progress",
                    f"source '{name}' may read {getattr(self, limit)} {what} in an epoch; "
                    "an epoch must read at least one",
                    f"leave {limit} out, or make it larger",
                )
        if not self.recheck_every > 0:
            yield Problem(
                "not-a-duration",
                f"recheck_every of source '{name}' is {self.recheck_every}; it must be a number "
                "of seconds larger than 0",
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
    def partition_name(cls, chunk: Chunk) -> str:
        return str(chunk.about.get("path", ""))


class FilesPlanner(Planner):
    """Plans the rest of partly read files, then new files by name.

    Known files are checked in turn, so that none changes unnoticed.
    """

    def __init__(self, source: FileSource, tp: Any, now: Callable[[], float]) -> None:
        self._source = source
        self._type = tp
        self._read: dict[str, tuple[int, int]] = {}
        """Size and modification time of each file that has a chunk in the offset log."""
        self._empty: dict[str, tuple[int, int] | None] = {}
        """Size and modification time of files without records; None: changed, look again."""
        self._rest: dict[str, Chunk] = {}
        """The last chunks of files that are not read to their end."""
        self._growing: dict[str, Chunk] = {}
        """The last chunk of each file, if files grow."""
        self._last = self._newest = -1
        """The number of the file that was read last, and the highest number so far."""
        self._folder = FolderWatch(source.path, source.recheck_every, now)
        self._look = RollingLook(source.recheck_every, now)
        self._unread: list[str] = []
        self._until: set[str] | None = None

    def advance(self, chunk: Chunk) -> None:
        path = chunk.about["path"]
        if path not in self._read and path not in self._empty:
            self._look.add(path)
        self._empty.pop(path, None)
        self._read[path] = chunk.about["size"], chunk.about["modified_ns"]
        self._keep(chunk)
        self._last, self._newest = chunk.number, max(chunk.number, self._newest)

    def _keep(self, chunk: Chunk) -> None:
        """Remember the last chunk of a file if there is or may be more to read."""
        path = chunk.about["path"]
        if self._source.grows:
            self._growing[path] = chunk
        if chunk.end != self._source.end_of(chunk):
            self._rest[path] = chunk
        else:
            self._rest.pop(path, None)

    def freeze(self) -> None:
        """Check every file now: such a run may end before each has had its turn."""
        self._look_at(self._look.all())
        self._until = set(self.unread())

    def unread(self) -> list[str]:
        """The files without a chunk in the offset log, by name; known empty ones are left out."""
        news = self._folder.news(self._read)
        found = self._unread if news is None else news
        self._unread = [path for path in found if path not in self._read]
        return [path for path in self._unread if self._empty.get(path) is None]

    def has_input(self) -> bool:
        return any(True for _ in self._candidates(self.unread()))

    def poll(self) -> list[Chunk]:
        self._look_at(self._look.due())
        chunks: list[Chunk] = []
        left, rows = self._source.max_bytes_per_epoch, self._source.max_rows_per_epoch
        files = [path for path in self.unread() if self._until is None or path in self._until]
        for chunk in self._candidates(files):
            if left <= 0 or rows <= 0 or len(chunks) == self._source.max_files_per_epoch:
                break
            part = replace(chunk, end=self._source.cut(chunk, left))
            part, count = self._source.within_rows(part, rows)
            chunks.append(part)
            left -= self._source.weight(part)
            rows -= count
        return sorted(chunks, key=lambda chunk: chunk.number)

    def _look_at(self, files: list[str]) -> None:
        """Check files for changes; raises `InputError` if one changed that must not."""
        for path in files:
            try:
                found = Path(path).stat()
            except OSError:  # files that were read may be deleted
                continue
            if path in self._empty:
                if self._empty[path] != file_state_of(found):
                    self._empty[path] = None
                    self._look.favour(path)
            elif self._read.get(path, file_state_of(found)) != file_state_of(found):
                self._change(path, found)

    def _change(self, path: str, found: os.stat_result) -> None:
        if path not in self._growing:
            size = self._read[path][0]
            raise InputError(changed(path, size, found.st_size))
        if self._until is None:  # when frozen, what is new is left for the next run
            try:
                self._keep(self._source.grown(self._growing[path], found))
            except OSError as error:
                raise cannot_be_read(path, error) from None
            self._read[path] = file_state_of(found)
            self._look.favour(path)

    def _candidates(self, files: list[str]) -> Iterator[Chunk]:
        """What can be read: the rest of partly read files, round-robin, then new files."""
        for last in sorted(self._rest.values(), key=lambda c: (c.number <= self._last, c.number)):
            check_unchanged(last)
            yield replace(last, start=last.end, end=self._source.end_of(last))
        number = self._newest
        for path in files:
            chunk = self._whole(path, number + 1)
            if chunk is not None:
                number += 1
                yield chunk

    def _whole(self, path: str, number: int) -> Chunk | None:
        """The chunk of a new file; None if the file is empty or gone."""
        try:
            found = Path(path).stat()
            chunk = self._source.whole_file(path, found, number, self._type)
        except FileNotFoundError:  # deleted before it was read
            return None
        except OSError as error:
            raise cannot_be_read(path, error) from None
        if chunk.start != chunk.end:
            return chunk
        if path not in self._empty:
            self._look.add(path)
        self._empty[path] = file_state_of(found)
        return None
