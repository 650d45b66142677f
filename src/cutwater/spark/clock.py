"""The newest time of a source, epoch by epoch, and what its rule says is complete.

An event is late if its time was complete at the start of its epoch. The newest time is written
to the log of files together with the chunks of an epoch, so a replay judges as the first run did.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from cutwater.flow.inference import StreamType
from cutwater.flow.steps import Source

__all__ = ["Clock", "lines_of"]


class Clock:
    """Reads times from the lines of a source that has a watermark rule."""

    def __init__(self, source: Source, stream: StreamType) -> None:
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
            if newest is None or newest <= time:
                newest = time
        return msgspec.to_builtins(newest)

    def completed(self, newest: Any) -> Any | None:
        """What is complete when this was the newest time; None if nothing is."""
        loaded = self._load(newest)
        return None if self._rule is None or loaded is None else self._rule.watermark(loaded)

    def is_late(self, value: Any, completed: Any | None) -> bool:
        """Was the value's time complete?"""
        return completed is not None and bool(getattr(value, self._field) <= completed)

    def _load(self, newest: Any) -> Any:
        return None if newest is None else msgspec.convert(newest, self._time_type)


def lines_of(path: str, start: int, end: int) -> list[bytes]:
    """The lines between two positions of a file, both at line ends."""
    with Path(path).open("rb") as file:
        file.seek(start)
        return file.read(end - start).split(b"\n")
