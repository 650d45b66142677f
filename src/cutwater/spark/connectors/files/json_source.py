"""A folder of JSON-lines files as a source.

Spark gives a line of text no position. Here it is the number of the file and the byte offset, from
which the line number of a bad record follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, ClassVar

import msgspec

from cutwater.spark.connectors.base.defaults import filler_of
from cutwater.spark.connectors.base.long_records import MAX_RECORD_BYTES, RUN_BYTES, LongRecord
from cutwater.spark.connectors.base.source import Chunk, RawBatch, RecordReader
from cutwater.spark.connectors.files.lines import (
    MAX_FILES_PER_EPOCH,
    MAX_ROWS_PER_EPOCH,
    lines_of,
)
from cutwater.spark.connectors.files.text import TextSource, batches_of, split_at_lines

__all__ = ["JsonLines"]


@dataclass(frozen=True)
class JsonLines(TextSource):
    """A folder of JSON-lines files: each appears atomically and does not change, or `grows`."""

    path: str
    max_bytes_per_epoch: int = 32 << 20
    """The most bytes that one epoch reads; a bucket's share of it is sorted in memory."""
    idle_after: float | None = None
    """Seconds without input after which the source no longer holds back the watermark of others."""
    grows: bool = False
    """Are files appended to? Then reading continues with what is new, up to the last line end."""
    recheck_every: float = 60.0
    """Seconds within which every file that was read is checked again; a changed one is refused."""
    max_rows_per_epoch: int = MAX_ROWS_PER_EPOCH
    max_files_per_epoch: int = MAX_FILES_PER_EPOCH
    max_record_bytes: int = MAX_RECORD_BYTES
    """A line with more bytes is a bad record, and is not loaded into memory."""

    kind: ClassVar[str] = "JSON lines"

    def cut(self, chunk: Chunk, amount: int) -> int:
        return split_at_lines(chunk.about["path"], chunk.start, chunk.end, amount)

    def reader(self, tp: Any) -> RecordReader:
        return _Lines(tp, self.max_record_bytes)


class _Lines(RecordReader):
    def __init__(self, tp: Any, longest: int) -> None:
        self._decode = _decoder(tp)
        self._longest = longest

    def batches(self, chunk: Chunk) -> Iterator[RawBatch]:
        for texts, offsets in lines_of(chunk, self._longest, RUN_BYTES):
            is_full = [bool(text) and not text.isspace() for text in texts]
            yield from batches_of(list(compress(texts, is_full)), list(compress(offsets, is_full)))

    def decode(self, raw_batch: RawBatch) -> list[Any]:
        _refuse_long(raw_batch.raws)
        return list(map(self._decode, raw_batch.raws))

    def times(self, raw_batch: RawBatch, field: str) -> list[Any]:
        _refuse_long(raw_batch.raws)
        decode = self._decode  # each record is freed at once: keeping all is slower
        return [getattr(decode(raw), field) for raw in raw_batch.raws]

    def decode_one(self, raw: bytes) -> Any:
        _refuse_long([raw])
        return self._decode(raw)

    def preview(self, raw: bytes) -> bytes:
        return raw

    def json_line(self, raw: bytes, value: Any) -> bytes:
        return raw.rstrip()


def _refuse_long(raws: Sequence[bytes]) -> None:
    """Raise `BadRecord` if the batch is a line that is too long: such a line comes alone."""
    if isinstance(raws[0], LongRecord):
        raws[0].refuse()


def _decoder(tp: Any) -> Callable[[bytes], Any]:
    """A function that decodes a line to a record of a type, defaults included."""
    decode, fill = msgspec.json.Decoder(tp).decode, filler_of(tp)
    if fill is None:
        return decode

    def read(line: bytes) -> Any:
        value = decode(line)
        fill(value)
        return value

    return read
