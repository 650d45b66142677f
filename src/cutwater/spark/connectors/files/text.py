"""Text files as sources: positions are byte offsets, shown to people as line numbers."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from cutwater.spark.connectors.base.long_records import RUN_BYTES
from cutwater.spark.connectors.base.source import Chunk, RawBatch
from cutwater.spark.connectors.files.changes import (
    cannot_be_read,
    check_unchanged,
    is_beginning_kept,
    sample_hash,
)
from cutwater.spark.connectors.files.lines import end_of_line, line_starts, until_line
from cutwater.spark.connectors.files.listing import FileSource

__all__ = [
    "BATCH_ROWS",
    "TextSource",
    "batches_of",
    "bytes_of",
    "last_line_end",
    "split_at_lines",
]

BATCH_ROWS = 50_000
"""The most records of a batch: even a short one takes a kilobyte while it is processed."""


class TextSource(FileSource):
    """A folder of text files; positions are byte offsets in a file."""

    def whole_file(self, path: str, found: os.stat_result, number: int, tp: Any) -> Chunk:
        about = {"path": path, "size": found.st_size, "modified_ns": found.st_mtime_ns}
        if self.grows:
            about |= self._as_far_as_complete(path, 0, found.st_size)
        return Chunk(number, 0, about.get("complete", found.st_size), about)

    def grown(self, last: Chunk, found: os.stat_result) -> Chunk:
        about = last.about
        if not is_beginning_kept(about, found):
            return super().grown(last, found)
        now = {"size": found.st_size, "modified_ns": found.st_mtime_ns}
        more = self._as_far_as_complete(about["path"], about["complete"], found.st_size)
        return replace(last, about={**about, **now, **more})

    def _as_far_as_complete(self, path: str, start: int, size: int) -> dict[str, Any]:
        """How far a growing file can be read, and a fingerprint of it up to there."""
        complete = self.complete_end(path, start, size)
        return {"complete": complete, "print": sample_hash(path, complete)}

    def complete_end(self, path: str, start: int, size: int) -> int:
        """The end of the last complete record; a record begins at `start`."""
        return last_line_end(path, start, size)

    def end_of(self, chunk: Chunk) -> Any:
        return chunk.about.get("complete", chunk.about["size"])

    def within_rows(self, chunk: Chunk, rows: int) -> tuple[Chunk, int]:
        """At most `rows` lines, or a few more where a record spans several."""
        size, count = until_line(chunk.about["path"], chunk.start, chunk.end, rows)
        return replace(chunk, end=self.cut(chunk, size)), count

    def location(self, chunk: Chunk, position: int) -> str:
        return f"{chunk.about['path']}:{_line_number(chunk, position)}"

    def coordinates(self, chunk: Chunk, position: int) -> dict[str, Any]:
        return {"file": chunk.about["path"], "byte": position}

    def readable_coordinates(self, chunk: Chunk, position: int) -> dict[str, Any]:
        return {"file": chunk.about["path"], "line": _line_number(chunk, position)}


def bytes_of(chunk: Chunk) -> bytes:
    """The bytes of a chunk; raises `InputError` if its file has changed."""
    check_unchanged(chunk)
    path = chunk.about["path"]
    try:
        with Path(path).open("rb") as file:
            file.seek(chunk.start)
            data = file.read(chunk.end - chunk.start)
    except OSError as error:
        raise cannot_be_read(path, error) from None
    check_unchanged(chunk)
    return data


def batches_of(raws: list[Any], positions: list[int]) -> Iterator[RawBatch]:
    """Records of a file, about `RUN_BYTES` or `BATCH_ROWS` at a time."""
    start = 0
    while start < len(raws):
        end = bisect_left(positions, positions[start] + RUN_BYTES, lo=start + 1)
        end = min(end, start + BATCH_ROWS)
        yield RawBatch(raws[start:end], positions[start:end])
        start = end


def split_at_lines(path: str, start: int, end: int, size: int) -> int:
    """The first end of a line at or after ``start + size``, or `end`."""
    return end if start + size >= end else end_of_line(path, start + size - 1, end)


def last_line_end(path: str, start: int, end: int) -> int:
    """The end of the last line that ends between two positions; `start` if none does."""
    with Path(path).open("rb") as file:
        while end > start:
            begin = max(start, end - RUN_BYTES)
            file.seek(begin)
            found = file.read(end - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
    return start


def _line_number(chunk: Chunk, position: int) -> int:
    """The number of the line that begins at a position; counted from 1."""
    return bisect_left(_line_starts(chunk.about["path"], chunk.end), position) + 1


@lru_cache(maxsize=8)
def _line_starts(path: str, end: int) -> array[int]:
    """The offsets of the lines of a file; cached, since a file may have many bad records."""
    return line_starts(path, end)
