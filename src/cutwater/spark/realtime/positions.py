"""How far the tasks of a run are, for each other: not durable, and only ever behind the truth."""

from __future__ import annotations

import os
import struct
from pathlib import Path

__all__ = ["Position", "read_position"]

_FORM = struct.Struct("<qq")


class Position:
    """Where a task is; written by that task alone, read by others."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)

    def tell(self, tick: int, flag: int = 0) -> None:
        """Tell the newest tick, and one more number."""
        os.pwrite(self._file.fileno(), _FORM.pack(tick, flag), 0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_position(path: Path) -> tuple[int, int]:
    """The tick and the number that a task told; (-1, 0) if it has not begun."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return -1, 0
    return _FORM.unpack(data) if len(data) == _FORM.size else (-1, 0)
