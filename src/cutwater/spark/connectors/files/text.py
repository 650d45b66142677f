"""Files of text as sources: a record begins at a byte, and people look for it by its line."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from cutwater.errors import InputError
from cutwater.spark.connectors.base.source import Chunk, Run
from cutwater.spark.connectors.files.lines import end_of_line, line_starts, until_line
from cutwater.spark.connectors.files.listing import FilesFeed, check_unchanged, unreadable

__all__ = ["RUN_BYTES", "RUN_ROWS", "TextFeed", "bytes_of", "runs_of", "split_at_lines"]

RUN_BYTES = 4 << 20
"""About so many bytes of text are decoded and sent together."""
RUN_ROWS = 50_000
"""And so many records at the most: a short one takes a kilobyte while it is worked on."""


class TextFeed(FilesFeed):
    """A folder of text; positions are bytes of a file."""

    def whole(self, path: str, found: os.stat_result, number: int, tp: Any) -> Chunk:
        about = {"path": path, "size": found.st_size, "modified_ns": found.st_mtime_ns}
        return Chunk(number, 0, found.st_size, about)

    def within_rows(self, chunk: Chunk, rows: int) -> tuple[Chunk, int]:
        """As many lines as that, or a few more where a record has several."""
        size, count = until_line(chunk.about["path"], chunk.start, chunk.end, rows)
        return replace(chunk, end=self.cut(chunk, size)), count

    def place(self, chunk: Chunk, position: int) -> str:
        return f"{chunk.about['path']}:{_line_number(chunk, position)}"

    def spot(self, chunk: Chunk, position: int) -> dict[str, Any]:
        return {"file": chunk.about["path"], "byte": position}

    def address(self, chunk: Chunk, position: int) -> dict[str, Any]:
        return {"file": chunk.about["path"], "line": _line_number(chunk, position)}


def bytes_of(chunk: Chunk) -> bytes:
    """What a chunk holds; raises `InputError` if its file has changed."""
    check_unchanged(chunk)
    path = chunk.about["path"]
    try:
        with Path(path).open("rb") as file:
            file.seek(chunk.start)
            data = file.read(chunk.end - chunk.start)
    except OSError as error:
        raise InputError(unreadable(path, error)) from None
    check_unchanged(chunk)
    return data


def runs_of(raws: list[Any], positions: list[int]) -> Iterator[Run]:
    """Records of a file, about `RUN_BYTES` or `RUN_ROWS` at a time."""
    start = 0
    while start < len(raws):
        end = bisect_left(positions, positions[start] + RUN_BYTES, lo=start + 1)
        end = min(end, start + RUN_ROWS)
        yield Run(raws[start:end], positions[start:end])
        start = end


def split_at_lines(path: str, start: int, end: int, size: int) -> int:
    """The first end of a line at or after ``start + size``, or `end`."""
    return end if start + size >= end else end_of_line(path, start + size - 1, end)


def _line_number(chunk: Chunk, position: int) -> int:
    """The number of the line of a file that begins at a position; counted from 1."""
    return bisect_left(_line_starts(chunk.about["path"], chunk.end), position) + 1


@lru_cache(maxsize=8)
def _line_starts(path: str, end: int) -> array[int]:
    """Where the lines of a file begin; worked out once, however many records are bad."""
    return line_starts(path, end)
