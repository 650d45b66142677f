"""How far the tasks of a run are, for each other: not durable, and only ever behind the truth."""

from __future__ import annotations

import os
import struct
from pathlib import Path

__all__ = ["Position", "read_position"]


class Position:
    """Where a task is; written by that task alone, read by others."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)

    def tell(self, tick: int, *numbers: int) -> None:
        """Tell the newest tick, and some numbers, always as many."""
        os.pwrite(self._file.fileno(), struct.pack(f"<{len(numbers) + 1}q", tick, *numbers), 0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_position(path: Path, count: int = 0) -> tuple[int, ...]:
    """The tick and `count` numbers that a task told; -1 and zeros if it has not begun."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    form = struct.Struct(f"<{count + 1}q")
    return form.unpack_from(data) if len(data) >= form.size else (-1, *[0] * count)
