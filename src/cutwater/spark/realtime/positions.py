"""How far the tasks of a run are, for each other: not durable, and never ahead of the truth."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import NamedTuple

__all__ = ["PositionFile", "ReaderPosition", "read_position", "read_reader"]


class ReaderPosition(NamedTuple):
    """What the first reader of a source reports."""

    planned: int = -1
    """The newest tick with records."""
    is_caught_up: int = 0
    amount: int = 0
    """How much was read in this batch, in the unit of the source."""
    ticks: int = 0
    """How many ticks with records that was."""
    decided: int = -1
    """All ticks up to this one are durably planned, or empty for good in this batch."""
    batch: int = -1
    """The Spark batch that it belongs to."""
    tick_us: int = 0
    """How long ticks are now, in microseconds."""


class PositionFile:
    """The position of a task; written by that task alone, read by others."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)

    def write(self, tick: int, *numbers: int) -> None:
        """Write the newest tick and some numbers, always equally many."""
        os.pwrite(self._file.fileno(), struct.pack(f"<{len(numbers) + 1}q", tick, *numbers), 0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_position(path: Path, count: int = 0) -> tuple[int, ...]:
    """The tick and `count` numbers that a task reported; -1 and zeros if it has not begun."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    form = struct.Struct(f"<{count + 1}q")
    return form.unpack_from(data) if len(data) >= form.size else (-1, *[0] * count)


def read_reader(path: Path) -> ReaderPosition:
    """What a reader reported last."""
    count = len(ReaderPosition._fields) - 1
    return ReaderPosition(*read_position(path, count)) if path.exists() else ReaderPosition()
