"""A folder of JSON-lines files as a source.

Spark has no position for a line of text; here it is the number of the file and the byte offset,
which also gives the line number of a bad record.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, compress
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from cutwater.spark.sources.feed import Chunk, RecordReader, Run
from cutwater.spark.sources.files import FilesFeed, check_unchanged
from cutwater.spark.sources.filling import filler_of

__all__ = ["RUN_BYTES", "JsonLines", "line_number", "runs_of_lines", "split_at_lines"]

RUN_BYTES = 4 << 20
"""About so many bytes of lines are decoded and sent together."""


@dataclass(frozen=True)
class JsonLines(FilesFeed):
    """A folder of JSON-lines files: each file appears whole, and does not change after."""

    path: str
    max_bytes_per_epoch: int = 32 << 20
    """How much one epoch reads at the most; a bucket's share of it is sorted in memory."""
    idle_after: float | None = None
    """Seconds without new input after which the source holds others back no longer."""

    kind: ClassVar[str] = "JSON lines"

    def whole(self, path: str, found: os.stat_result, number: int) -> Chunk:
        about = {"path": path, "size": found.st_size, "modified_ns": found.st_mtime_ns}
        return Chunk(number, 0, found.st_size, about)

    def cut(self, chunk: Chunk, amount: int) -> int:
        return split_at_lines(chunk.about["path"], chunk.start, chunk.end, amount)

    def reader(self, tp: Any) -> RecordReader:
        return _Lines(tp)

    def place(self, chunk: Chunk, position: int) -> str:
        return f"{chunk.about['path']}:{line_number(chunk, position)}"

    def address(self, chunk: Chunk, position: int) -> dict[str, Any]:
        return {"file": chunk.about["path"], "line": line_number(chunk, position)}


class _Lines(RecordReader):
    def __init__(self, tp: Any) -> None:
        self._decode = _decoder(tp)

    def runs(self, chunk: Chunk) -> Iterator[Run]:
        check_unchanged(chunk)
        texts = _lines_between(chunk.about["path"], chunk.start, chunk.end)
        check_unchanged(chunk)
        positions = list(accumulate((len(text) + 1 for text in texts), initial=chunk.start))[:-1]
        is_full = [bool(text) and not text.isspace() for text in texts]
        return runs_of_lines(list(compress(texts, is_full)), list(compress(positions, is_full)))

    def decode(self, run: Run) -> list[Any]:
        return list(map(self._decode, run.raws))

    def decode_one(self, raw: bytes) -> Any:
        return self._decode(raw)

    def text(self, raw: bytes) -> bytes:
        return raw

    def line(self, raw: bytes, value: Any) -> bytes:
        return raw.rstrip()

    def count(self, chunk: Chunk) -> int:
        lines = _lines_between(chunk.about["path"], chunk.start, chunk.end)
        return sum(bool(line) and not line.isspace() for line in lines)


def _decoder(tp: Any) -> Callable[[bytes], Any]:
    """Reads a record of a type from a line."""
    decode, fill = msgspec.json.Decoder(tp).decode, filler_of(tp)
    if fill is None:
        return decode

    def read(line: bytes) -> Any:
        value = decode(line)
        fill(value)
        return value

    return read


def runs_of_lines(raws: list[Any], positions: list[int]) -> Iterator[Run]:
    """Records of a file, about `RUN_BYTES` at a time."""
    start = 0
    while start < len(raws):
        end = bisect_left(positions, positions[start] + RUN_BYTES, lo=start + 1)
        yield Run(raws[start:end], positions[start:end])
        start = end


def _lines_between(path: str, start: int, end: int) -> list[bytes]:
    """The lines between two positions of a file, both at line ends."""
    with Path(path).open("rb") as file:
        file.seek(start)
        return file.read(end - start).split(b"\n")


def split_at_lines(path: str, start: int, end: int, size: int) -> int:
    """The first end of a line at or after ``start + size``, or `end`."""
    if start + size >= end:
        return end
    with Path(path).open("rb") as file:
        file.seek(start + size - 1)
        file.readline()
        return min(file.tell(), end)


def line_number(chunk: Chunk, position: int) -> int:
    """The number of the line of a file that begins at a position; counted from 1."""
    return bisect_left(_line_starts(chunk.about["path"], chunk.end), position) + 1


@lru_cache(maxsize=8)
def _line_starts(path: str, end: int) -> list[int]:
    """Where the lines of a file begin; worked out once, however many records are bad."""
    with Path(path).open("rb") as file:
        lines = file.read(end).split(b"\n")
    return list(accumulate((len(line) + 1 for line in lines), initial=0))
