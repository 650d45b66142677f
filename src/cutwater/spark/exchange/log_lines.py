"""The lines of a loop's log: for each event its order, its time if it is needed, its value.

Each line begins with the number of the input epoch to which the event belongs. The lines of a file
are sorted by this number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

import msgspec

from cutwater.codec import Codec
from cutwater.errors import CutwaterError, Problem, RefusedError
from cutwater.flow.state_snapshots import time_kept_as
from cutwater.flow.steps import FromLog
from cutwater.ordering import NO_KEY
from cutwater.spark.exchange.batch import EventBatch

__all__ = ["LogLines", "inputs_in", "lines_by_input", "orders_in", "with_input_epoch"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[bytes, bytes | None, bytes]).decode
_peek = msgspec.json.Decoder(tuple[bytes, msgspec.Raw, msgspec.Raw]).decode


class LogLines:
    """Encodes and decodes the events of one log."""

    def __init__(self, log: FromLog, is_timed: bool) -> None:
        self._value = Codec(log.type)
        self._time = Codec(time_kept_as(log.stream.time)) if is_timed else None

    def written(self, batch: EventBatch) -> list[bytes]:
        """One line per event."""
        values = map(self._value.encode, batch.values)
        times: Iterable[bytes | None] = [None] * len(batch)
        if self._time is not None:
            times = map(self._time.encode, batch.times or ())
        rows = zip(batch.orders, times, values, strict=True)
        return [_encode(row) + b"\n" for row in rows]

    def read(self, path: str, lines: Sequence[bytes], label: int) -> EventBatch:
        """The events of lines of a file, without keys, in the bucket with this label."""
        with _undamaged(path):
            return self._read(lines, label)

    def _read(self, lines: Sequence[bytes], label: int) -> EventBatch:
        rows = list(map(_decode, lines))
        decode = self._value.decode
        times = None
        if self._time is not None:
            times = [self._time.decode(time) for _, time, _ in rows if time is not None]
        orders = [order for order, _, _ in rows]
        values = [decode(value) for _, _, value in rows]
        return EventBatch(orders, [NO_KEY] * len(rows), values, times=times, label=label)


def orders_in(path: str, lines: Iterable[bytes]) -> list[bytes]:
    """The orders of the events of a file's lines; decodes nothing else."""
    with _undamaged(path):
        return [_peek(line)[0] for line in lines]


def with_input_epoch(line: bytes, number: int) -> bytes:
    """The line of an event that belongs to an input epoch."""
    return b"%d %b" % (number, line)


def lines_by_input(path: str) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of a file by input epoch, without the number."""
    with _undamaged(path):
        parted = [_parted(line) for line in Path(path).read_bytes().split(b"\n")[:-1]]
    for number, lines in groupby(parted, key=lambda parts: parts[0]):
        yield number, [line for _, line in lines]


def _parted(line: bytes) -> tuple[int, bytes]:
    number, _, rest = line.partition(b" ")
    return int(number), rest


def inputs_in(path: str) -> list[int]:
    """The input epochs of which a file has lines; found by binary search, not by a scan."""
    found: list[int] = []
    with _undamaged(path), Path(path).open("rb") as file:
        offset, size = 0, file.seek(0, 2)
        while offset < size:
            found.append(_number_at(file, offset))
            low, high = offset, size
            while low < high:  # the first offset after which no line has this number
                middle = (low + high) // 2
                start = _line_after(file, middle)
                if start < size and _number_at(file, start) == found[-1]:
                    low = middle + 1
                else:
                    high = middle
            offset = _line_after(file, low)
    return found


def _line_after(file: BinaryIO, offset: int) -> int:
    """The offset of the first line that begins after an offset."""
    file.seek(offset)
    file.readline()
    return file.tell()


def _number_at(file: BinaryIO, offset: int) -> int:
    file.seek(offset)
    return int(file.readline(32).split(b" ", 1)[0])


@contextmanager
def _undamaged(path: str) -> Iterator[None]:
    """Raise `RefusedError` for lines that are not what was written."""
    try:
        yield
    except (ValueError, RecursionError, CutwaterError) as error:
        raise RefusedError(
            Problem(
                "damaged-file",
                f"the log of a loop {path} is damaged: {error}",
                "restore the checkpoint from a backup, with the outputs of the same time",
            )
        ) from None
