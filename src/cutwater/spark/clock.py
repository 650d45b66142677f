"""The clock of a source: its newest time, epoch by epoch, and what is complete.

An event is late if its time was complete at the start of its epoch. The newest time is written
to the log of files together with the chunks of an epoch, so a replay judges as the first run did.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from cutwater.errors import InputError, Problem
from cutwater.flow.inference import StreamType
from cutwater.flow.steps import Source

__all__ = [
    "Clock",
    "Numbering",
    "SourceClock",
    "count_records",
    "is_blank_line",
    "lines_of",
    "not_a_time",
]


class Clock:
    """The clock of a source with a watermark rule: the newest time of its records."""

    def __init__(self, source: Source, stream: StreamType) -> None:
        self._source = source
        self._rule = source.watermark
        self._field = source.time or ""
        self._time_type = stream.time
        self._decode = msgspec.json.Decoder(source.type).decode

    def newest(self, before: Any, lines: Iterable[bytes]) -> Any:
        """The newest time once these lines are read, in a form that JSON keeps."""
        newest = self._load(before)
        for line in lines:
            try:
                time = getattr(self._decode(line), self._field)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            if newest is None or self._is_before(newest, time):
                newest = time
        return msgspec.to_builtins(newest)

    def completed(self, newest: Any) -> Any | None:
        """What is complete when this was the newest time; None if nothing is."""
        loaded = self._load(newest)
        return None if self._rule is None or loaded is None else self._rule.watermark(loaded)

    def is_late(self, value: Any, completed: Any | None) -> bool:
        """Was the value's time complete?"""
        return completed is not None and self._is_before(getattr(value, self._field), completed)

    def first(self, newest: Any) -> int:
        """The number of the next record; of no use here."""
        return 0

    def _is_before(self, time: Any, other: Any) -> bool:
        try:
            return bool(time <= other)
        except TypeError as error:
            raise InputError(not_a_time(self._source, time, str(error))) from None

    def _load(self, newest: Any) -> Any:
        return None if newest is None else msgspec.convert(newest, self._time_type)


class Numbering:
    """The clock of a source without times: its records are numbered 0, 1, 2, …

    A line that is no record has a number as well, so a bad record that is skipped leaves a gap.
    """

    def newest(self, before: int | None, lines: Iterable[bytes]) -> int:
        """How many records there are once these lines are read."""
        return (before or 0) + sum(not is_blank_line(line) for line in lines)

    def completed(self, newest: int | None) -> int | None:
        """The number of the last record; None if there is none."""
        return newest - 1 if newest else None

    def is_late(self, value: Any, completed: int | None) -> bool:
        """Never: numbers only grow."""
        return False

    def first(self, newest: int | None) -> int:
        """The number of the next record."""
        return newest or 0


SourceClock = Clock | Numbering


def not_a_time(source: Source, time: Any, reason: str) -> Problem:
    """Why a value cannot be the time of an event."""
    return Problem(
        "not-a-time",
        f"{source.title} was given the time {time!r}; it has no place in an order: {reason}",
        "times of a source are of one kind and have <=; correct the input",
    )


def is_blank_line(line: bytes) -> bool:
    """Is there nothing on the line?"""
    return not line or line.isspace()


def lines_of(path: str, start: int, end: int) -> list[bytes]:
    """The lines between two positions of a file, both at line ends."""
    with Path(path).open("rb") as file:
        file.seek(start)
        return file.read(end - start).split(b"\n")


def count_records(path: str, start: int, end: int) -> int:
    """How many lines between two positions of a file are not blank."""
    return sum(not is_blank_line(line) for line in lines_of(path, start, end))
