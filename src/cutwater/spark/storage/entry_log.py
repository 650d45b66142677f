"""A durable log of numbered entries: new ones in files of their own, old ones in one file.

::

    7001.json ... 7064.json     the newest entries, each written at once and whole
    compacted.jsonl             all before them, one line for each: [number, entry, sum]

Entries are appended to the compacted file and made durable before their own files are deleted, so
a line that a crash cut off is one whose file is still there: whatever follows the last whole line
in sequence does not count, and is overwritten. A new entry is never written over one that is there:
a process that was taken for dead may still be at work on the next one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from cutwater.errors import FencedError, InputError, Problem
from cutwater.spark.storage.durable import (
    create_file,
    parse_json,
    read_json,
    sync_folder,
    write_json,
)

__all__ = ["KEPT", "EntryLog", "newest_entry", "read_entry"]

KEPT = 32
"""So many of the newest entries keep files of their own; Spark replays the last one or two."""


class EntryLog:
    """A log in a folder; entries count from 1. It is written by one process at a time."""

    def __init__(
        self, folder: Path, what: str, note: Callable[[Any], None] = lambda _entry: None
    ) -> None:
        """Open a log; `note` is given every entry that is there, in order."""
        self._folder = folder
        self._what = what
        self._compacted = folder / "compacted.jsonl"
        numbers = _numbers(folder)  # before the compacted file: what moves meanwhile is found there
        self._oldest_file = min(numbers, default=1)
        self._count = self._bytes = 0
        for number, entry, end in self._lines():
            self._count, self._bytes = number, end
            note(entry)
        self.newest = max([*numbers, self._count])
        """The number of the newest entry; 0 if there is none."""
        missing = set(range(self._count + 1, self.newest + 1)).difference(numbers)
        if missing:
            raise InputError(self._missing(min(missing)))
        for number in range(self._count + 1, self.newest + 1):
            note(self.read(number))

    def read(self, number: int) -> Any:
        """An entry; one that is compacted is searched for."""
        entry = read_json(self._file(number), self._what)
        if entry is not None:
            return entry
        for found, line, _ in self._lines():
            if found == number:
                return line
        raise InputError(self._missing(number))

    def append(self, entry: Any) -> int:
        """Write the next entry, durably; its number. One that another has written stays."""
        path = self._file(self.newest + 1)
        try:
            write_json(path, entry, is_new=True)
        except FileExistsError:
            raise _written_by_another(path) from None
        self.newest += 1
        if self.newest - self._count > 2 * KEPT:
            self._compact(self.newest - KEPT)
        return self.newest

    def _compact(self, until: int) -> None:
        """Move entries into the compacted file; first they are there, then their files go."""
        numbers = range(self._count + 1, until + 1)
        lines = b"".join(_line(number, self.read(number)) for number in numbers)
        if not self._compacted.exists():
            create_file(self._compacted).close()
        with self._compacted.open("r+b") as file:
            file.truncate(self._bytes)
            file.seek(self._bytes)
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._folder)
        self._count, self._bytes = until, self._bytes + len(lines)
        for number in range(self._oldest_file, until + 1):
            self._file(number).unlink(missing_ok=True)
        self._oldest_file = until + 1

    def _lines(self) -> Iterator[tuple[int, Any, int]]:
        """Number, entry and end of each line of the compacted file, as far as it is whole."""
        if not self._compacted.exists():
            return
        expected, end = 1, 0
        with self._compacted.open("rb") as file:
            for line in file:
                entry = _entry(line, expected)
                if entry is None:
                    return
                end += len(line)
                yield expected, entry, end
                expected += 1

    def _file(self, number: int) -> Path:
        return self._folder / f"{number}.json"

    def _missing(self, number: int) -> Problem:
        return Problem(
            "missing-entry",
            f"{self._file(number)} is missing; the checkpoint says it was read",
            "restore the checkpoint from a backup, whole",
        )


def _written_by_another(path: Path) -> FencedError:
    return FencedError.because(
        f"{path} was written meanwhile by another run with this checkpoint",
        "if another run is active, stop one of the two; else run it again: it goes on from there",
    )


def read_entry(folder: Path, number: int, what: str) -> Any | None:
    """One of the newest entries of a log; None if it is not among those in files of their own."""
    return read_json(folder / f"{number}.json", what)


def newest_entry(folder: Path, what: str) -> Any | None:
    """The newest entry of a log that another process may be writing to; None if there is none."""
    newest = max(_numbers(folder), default=None)
    return None if newest is None else read_json(folder / f"{newest}.json", what)


def _numbers(folder: Path) -> set[int]:
    return {int(p.stem) for p in folder.glob("*.json") if p.stem.isdigit()}


def _line(number: int, entry: Any) -> bytes:
    """An entry as a line, with a sum over what is before the sum."""
    said = json.dumps([number, entry]).encode()[:-1]
    return said + b', "' + xxhash.xxh64_hexdigest(said).encode() + b'"]\n'


def _entry(line: bytes, number: int) -> Any | None:
    """The entry in a line; None if the line is not whole or has another number."""
    if not line.endswith(b"\n"):
        return None
    try:
        found, entry, *noted = _decoded(line)
    except (ValueError, TypeError):  # also what msgspec raises
        return None
    said, _, _ = line.rpartition(b", ")
    if noted != [xxhash.xxh64_hexdigest(said)]:
        return None
    return entry if found == number else None


def _decoded(line: bytes) -> Any:
    """What JSON says; infinities, which Python writes, are rare and take longer."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return parse_json(line)
