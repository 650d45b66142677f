"""Reads the lines of a file in blocks: a block is in memory, and at most one longer record."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cutwater.spark.connectors.base.long_records import SHOWN_BYTES, LongRecord
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.files.changes import cannot_be_read, check_unchanged

__all__ = [
    "MAX_FILES_PER_EPOCH",
    "MAX_ROWS_PER_EPOCH",
    "end_of_line",
    "line_starts",
    "lines_of",
    "longest_line",
    "until_line",
]

MAX_ROWS_PER_EPOCH = 1_000_000
"""A buffered row has an overhead of about 250 bytes, so an epoch whose rows all have one key needs
about a quarter of a gigabyte (``benchmarks/skew.py``)."""
MAX_FILES_PER_EPOCH = 5_000
"""A file takes a few hundred bytes in the offset log, and in the plan of its epoch."""
_BLOCK = 1 << 20


def longest_line(data: bytes) -> int:
    """The length of the longest line in bytes."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    return int(np.diff(ends, prepend=-1, append=len(data)).max()) - 1


def lines_of(
    chunk: Chunk, longest: int, block_size: int
) -> Iterator[tuple[list[bytes], list[int]]]:
    """The lines of a chunk and their offsets, about a block at a time.

    A line of more than `longest` bytes comes alone, as a `LongRecord`. Raises `InputError` if the
    file has changed.
    """
    check_unchanged(chunk)
    path = chunk.about["path"]
    try:
        with Path(path).open("rb") as file:
            file.seek(chunk.start)
            yield from _lines(file, chunk.start, chunk.end, longest, block_size)
    except OSError as error:
        raise cannot_be_read(path, error) from None
    check_unchanged(chunk)


def _lines(
    file: BinaryIO, start: int, end: int, longest: int, block_size: int
) -> Iterator[tuple[list[bytes], list[int]]]:
    kept, size, begin = b"", 0, start  # of the unfinished line: its bytes, length and offset
    offset = start
    while offset < end and (block := file.read(min(block_size, end - offset))):
        offset += len(block)
        first, is_over, rest = block.partition(b"\n")
        size += len(first)
        if not is_over:
            kept = (kept + block)[:SHOWN_BYTES] if size > longest else kept + block
            continue
        data, at = kept + block, begin
        if size > longest:
            yield [LongRecord.of(kept + first[:SHOWN_BYTES], size, longest)], [begin]
            data, at = rest, offset - len(rest)
        whole, found, kept = data.rpartition(b"\n")
        if found:
            yield from _parted(whole, at, longest)
        size, begin = len(kept), offset - len(kept)
    if size > longest:
        yield [LongRecord.of(kept, size, longest)], [begin]
    elif kept:
        yield [kept], [begin]


def _parted(data: bytes, start: int, longest: int) -> Iterator[tuple[list[bytes], list[int]]]:
    """Complete lines and their offsets; each one that is too long comes alone."""
    texts = data.split(b"\n")
    offsets = list(accumulate((len(text) + 1 for text in texts), initial=start))[:-1]
    if max(map(len, texts)) <= longest:
        yield texts, offsets
        return
    begin = 0
    for number, text in enumerate(texts):
        if len(text) > longest:
            if begin < number:
                yield texts[begin:number], offsets[begin:number]
            yield [LongRecord.of(text, len(text), longest)], [offsets[number]]
            begin = number + 1
    if begin < len(texts):
        yield texts[begin:], offsets[begin:]


def end_of_line(path: str, offset: int, end: int) -> int:
    """The end of the line that contains an offset, or `end` if that comes first."""
    with Path(path).open("rb") as file:
        file.seek(offset)
        while offset < end and (block := file.read(_BLOCK)):
            found = block.find(b"\n")
            if found >= 0:
                return min(offset + found + 1, end)
            offset += len(block)
    return end


def until_line(path: str, start: int, end: int, lines: int) -> tuple[int, int]:
    """The length of the first `lines` lines from `start` on, or of fewer, and their number."""
    offset, count, is_open = start, 0, False
    with Path(path).open("rb") as file:
        file.seek(start)
        while offset < end and (block := file.read(min(_BLOCK, end - offset))):
            found = block.count(b"\n")
            if count + found >= lines:
                ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
                return offset + int(ends[lines - count - 1]) + 1 - start, lines
            count, offset = count + found, offset + len(block)
            is_open = not block.endswith(b"\n")
    return end - start, count + is_open


def line_starts(path: str, end: int) -> array[int]:
    """The offsets of the lines of a file; does not load the file into memory."""
    starts, offset = array("Q", [0]), 0
    with Path(path).open("rb") as file:
        while offset < end and (block := file.read(min(_BLOCK, end - offset))):
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
            starts.extend((ends + offset + 1).tolist())
            offset += len(block)
    return starts
