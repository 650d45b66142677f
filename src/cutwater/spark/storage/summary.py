"""The summary of the old entries of a log, in one file.

Each line is ``[number, items, sum]``: what is kept of the entries after those of the line before,
up to that number. A torn line is ignored and overwritten: the entries that it summarises are
deleted only once it is durable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from cutwater.spark.storage.durable import (
    create_file,
    parse_json,
    sync_file,
    sync_folder,
    write_file,
)

__all__ = ["SummaryFile"]

_WORTH_REWRITING = 64 << 10
"""The least number of bytes appended before all lines are merged into one."""


class SummaryFile:
    """A summary file; written by one process at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.through = 0
        """The number of the newest entry that is summarised; 0 if there is none."""
        self._bytes = 0
        self._first_line_bytes = 0

    def read(self) -> Iterator[list[Any]]:
        """The items of each intact line, in order; sets `through` to the last one."""
        self.through = self._bytes = self._first_line_bytes = 0
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            for line in file:
                found = _parsed(line)
                if found is None or found[0] <= self.through:
                    return
                self.through = found[0]
                self._bytes += len(line)
                self._first_line_bytes = self._first_line_bytes or len(line)
                yield found[1]

    @property
    def is_long(self) -> bool:
        """Has as much been appended as the file had when it was one line? Then rewrite it.

        So the bytes written stay within twice those kept, however long the log runs.
        """
        appended = self._bytes - self._first_line_bytes
        return appended > max(self._first_line_bytes, _WORTH_REWRITING)

    def append(self, through: int, items: list[Any]) -> None:
        """Add a line, durably."""
        line = _line(through, items)
        if not self._path.exists():
            create_file(self._path).close()
        with self._path.open("r+b") as file:
            file.truncate(self._bytes)
            file.seek(self._bytes)
            file.write(line)
            sync_file(file)
        sync_folder(self._path.parent)
        self.through, self._bytes = through, self._bytes + len(line)
        self._first_line_bytes = self._first_line_bytes or len(line)

    def rewrite(self, through: int, items: list[Any]) -> None:
        """Merge all lines into one, durably."""
        line = _line(through, items)
        write_file(self._path, line)
        self.through, self._bytes, self._first_line_bytes = through, len(line), len(line)


def _line(number: int, items: list[Any]) -> bytes:
    """A line, with a checksum over the rest."""
    content = json.dumps([number, items]).encode()[:-1]
    return content + b', "' + xxhash.xxh64_hexdigest(content).encode() + b'"]\n'


def _parsed(line: bytes) -> tuple[int, list[Any]] | None:
    """Number and items of a line; None if it is torn."""
    if not line.endswith(b"\n"):
        return None
    try:
        number, items, noted = _decoded(line)
    except (ValueError, TypeError):
        return None
    content, _, _ = line.rpartition(b", ")
    return (number, items) if noted == xxhash.xxh64_hexdigest(content) else None


def _decoded(line: bytes) -> Any:
    """The value of a JSON text; infinities, which Python writes, are rare and take longer."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return parse_json(line)
