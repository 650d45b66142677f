"""A folder of JSON-lines files as a source.

Spark has no position for a line of text; here it is the number of the file and the byte offset,
which also gives the line number of a bad record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, ClassVar

import msgspec

from cutwater.spark.connectors.base.defaults import filler_of
from cutwater.spark.connectors.base.source import Chunk, RecordReader, Run
from cutwater.spark.connectors.files.lines import (
    MAX_FILES_PER_EPOCH,
    MAX_RECORD_BYTES,
    MAX_ROWS_PER_EPOCH,
    LongLine,
    lines_of,
)
from cutwater.spark.connectors.files.text import RUN_BYTES, TextFeed, runs_of, split_at_lines

__all__ = ["JsonLines"]


@dataclass(frozen=True)
class JsonLines(TextFeed):
    """A folder of JSON-lines files: each appears whole and does not change after, or `grows`."""

    path: str
    max_bytes_per_epoch: int = 32 << 20
    """How much one epoch reads at the most; a bucket's share of it is sorted in memory."""
    idle_after: float | None = None
    """Seconds without new input after which the source holds others back no longer."""
    grows: bool = False
    """Are files appended to? Then what is new is read on; a line counts once it has its end."""
    recheck_every: float = 60.0
    """Every file that was read is looked at again within so many seconds; a changed one is
    refused."""
    max_rows_per_epoch: int = MAX_ROWS_PER_EPOCH
    max_files_per_epoch: int = MAX_FILES_PER_EPOCH
    max_record_bytes: int = MAX_RECORD_BYTES
    """A line with more bytes is a bad record, and is not held in memory."""

    kind: ClassVar[str] = "JSON lines"

    def cut(self, chunk: Chunk, amount: int) -> int:
        return split_at_lines(chunk.about["path"], chunk.start, chunk.end, amount)

    def reader(self, tp: Any) -> RecordReader:
        return _Lines(tp, self.max_record_bytes)


class _Lines(RecordReader):
    def __init__(self, tp: Any, longest: int) -> None:
        self._decode = _decoder(tp)
        self._longest = longest

    def runs(self, chunk: Chunk) -> Iterator[Run]:
        for texts, places in lines_of(chunk, self._longest, RUN_BYTES):
            is_full = [bool(text) and not text.isspace() for text in texts]
            yield from runs_of(list(compress(texts, is_full)), list(compress(places, is_full)))

    def decode(self, run: Run) -> list[Any]:
        _refuse_long(run.raws)
        return list(map(self._decode, run.raws))

    def times(self, run: Run, field: str) -> list[Any]:
        _refuse_long(run.raws)
        decode = self._decode  # records are let go at once: to keep them all takes longer
        return [getattr(decode(raw), field) for raw in run.raws]

    def decode_one(self, raw: bytes) -> Any:
        _refuse_long([raw])
        return self._decode(raw)

    def text(self, raw: bytes) -> bytes:
        return raw

    def line(self, raw: bytes, value: Any) -> bytes:
        return raw.rstrip()


def _refuse_long(raws: Sequence[bytes]) -> None:
    """A line that is too long comes alone."""
    if isinstance(raws[0], LongLine):
        raws[0].refuse()


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
