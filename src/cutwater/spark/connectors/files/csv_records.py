"""Finds where the records of a CSV file end, without loading overlong ones into memory.

A quote that is never closed makes the rest of a file one record, however large that is.

Python's reader decides where a record ends, and distinguishes only whether a character is a quote,
a delimiter, a line end or any other. So once a record is too long, its lines are shortened in ways
that cannot change the answer: all other characters are mapped to one; of a stretch without quotes
only the first and last character are kept; and a repeated part is kept as often as its count modulo
60 requires (the reader has five states, so repetition leads through a cycle of at most five).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from cutwater.spark.connectors.base.long_records import RUN_BYTES
from cutwater.spark.connectors.files.lines import end_of_line
from cutwater.spark.connectors.files.text import last_line_end

__all__ = [
    "LONGEST_OPEN",
    "complete_records",
    "csv_reader",
    "first_records",
    "has_quotes",
    "records_until",
]

_LONGEST_FIELD = (1 << 31) - 1
LONGEST_OPEN = 1 << 20
"""Bytes after which an open quote in a growing file is no longer awaited: the record is bad."""
_PIECE = 1 << 20
"""Bytes of a line that are in memory at a time, if it is too long."""
_STRETCH = re.compile(rb'([^"\r\n])[^"\r\n]+([^"\r\n])')
_CYCLE = 60
_REPEATED = re.compile(rb'((?:"[^"\r\n]{0,2}){1,2})\1{%d,}' % (2 * _CYCLE))


def csv_reader(lines: Any, delimiter: str) -> Any:
    """Python's strict CSV reader, which defines what a record is."""
    csv.field_size_limit(_LONGEST_FIELD)
    return csv.reader(lines, delimiter=delimiter, strict=True)


def records_until(
    path: str, start: int, end: int, amount: int, delimiter: str, longest: int
) -> tuple[int, int]:
    """The end of the first records with at least `amount` bytes, and where the last begins."""
    if start + amount < end:
        line_end = end_of_line(path, start + amount - 1, end)
        if not has_quotes(path, start, line_end):
            return line_end, last_line_end(path, start, start + amount - 1)
    with Path(path).open("rb") as file:
        file.seek(start)
        size, last = first_records(file, min(amount, end - start), delimiter, longest)
    return min(start + size, end), start + last


def first_records(file: BinaryIO, amount: int, delimiter: str, longest: int) -> tuple[int, int]:
    """The size of the first records with at least `amount` bytes, and without the last of them."""
    taken = last = 0
    for begin, end in _records(file, delimiter, longest):
        taken, last = end, begin
        if taken >= amount:
            break
    return taken, last


def complete_records(path: str, start: int, end: int, delimiter: str) -> int:
    """The end of the last record that is complete: that has a line end outside quotes."""
    at = complete = start

    def lines() -> Iterator[str]:
        nonlocal at
        with Path(path).open("rb") as file:
            file.seek(start)
            while at - complete <= LONGEST_OPEN:
                line, size = _line(file, delimiter, LONGEST_OPEN)
                if at + size > end or line[-1:] != b"\n":
                    return
                at += size
                yield line.decode("latin-1")

    reader = csv_reader(lines(), delimiter)
    while True:
        try:
            if next(reader, None) is None:
                return complete
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                return complete
        complete = at


def has_quotes(path: str, start: int, end: int) -> bool:
    """Is there a quote between two offsets of a file?"""
    with Path(path).open("rb") as file:
        file.seek(start)
        parts = (file.read(min(RUN_BYTES, end - at)) for at in range(start, end, RUN_BYTES))
        return any(b'"' in part for part in parts)


def _records(file: BinaryIO, delimiter: str, longest: int) -> Iterator[tuple[int, int]]:
    """The beginning and end of each record; one with an unclosed quote ends with the file."""
    offset = begin = 0

    def lines() -> Iterator[str]:
        nonlocal offset
        while True:
            line, size = _line(file, delimiter, longest - (offset - begin))
            if not size:
                return
            offset += size
            yield line.decode("latin-1")  # what separates fields and records is ASCII

    reader = csv_reader(lines(), delimiter)
    while True:
        try:
            if next(reader, None) is None:
                return
        except csv.Error:
            pass
        yield begin, offset
        begin = offset


def _line(file: BinaryIO, delimiter: str, longest: int) -> tuple[bytes, int]:
    """The next line and its size; shortened if it is longer than `longest`."""
    kept, size = b"", 0
    while piece := file.readline(_PIECE):
        kept += piece
        size += len(piece)
        if size > longest:
            kept = _short(kept, delimiter)
        if piece.endswith(b"\n"):
            break
    return kept, size


def _short(text: bytes, delimiter: str) -> bytes:
    """A shorter text that leads the CSV reader into the same state."""
    text = _STRETCH.sub(rb"\1\2", text.translate(_classes(delimiter)))
    return _REPEATED.sub(_fewer, text)


def _fewer(found: re.Match[bytes]) -> bytes:
    part, times = found[1], len(found[0]) // len(found[1])
    return part * (_CYCLE + times % _CYCLE)


@lru_cache
def _classes(delimiter: str) -> bytes:
    """A translation table that maps all characters without meaning to the reader to one."""
    other = ord("y" if delimiter == "x" else "x")
    kept = {ord(delimiter), *b'"\r\n'}
    return bytes(code if code in kept else other for code in range(256))
