"""A source that is made up: records are a function of their number, for demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from cutwater.errors import CutwaterError, InputError, Problem
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.source import (
    BadRecord,
    Chunk,
    Feed,
    Planner,
    RecordReader,
    Replay,
    Run,
)

__all__ = ["RUN_ROWS", "Generated"]

RUN_ROWS = 20_000
"""So many rows are made and sent together."""


@dataclass(frozen=True)
class Generated(Feed):
    """Records that a function makes of the numbers 0, 1, 2, …; the same each time it is asked."""

    record_of: Callable[[int], Any]
    """Makes the record of a number, or a dict of its fields."""
    total: int | None = None
    """How many there are; None: as many as time brings."""
    rows_per_second: float | None = None
    """How many there are for each second since the source began; None: all at once."""
    max_rows_per_epoch: int = 100_000
    """How many one epoch reads at the most."""
    idle_after: float | None = None
    """Seconds without new input after which the source holds others back no longer."""

    kind: ClassVar[str] = "generator"
    pieces: ClassVar[str] = "generators"
    unit: ClassVar[str] = "rows"
    smallest_share: ClassVar[int] = 1_000

    def problems(self, name: str, step: Source) -> Iterator[Problem]:
        if self.total is None and self.rows_per_second is None:
            yield Problem(
                "endless-generator",
                f"source '{name}' is generated without an end, all of it at once",
                "give it a total, or rows_per_second",
            )
        for setting in ("total", "rows_per_second", "max_rows_per_epoch"):
            value = getattr(self, setting)
            if value is not None and not value > 0:
                yield Problem(
                    "no-progress",
                    f"{setting} of source '{name}' is {value}; it is larger than 0",
                    f"leave {setting} out, or make it larger",
                )

    def replay(self) -> Replay:
        return Replay(
            True,
            "each row is made of its number",
            "the function makes the same of a number each time",
        )

    def planner(self, tp: Any, now: Callable[[], float]) -> Planner:
        return _Clockwork(self, now)

    @classmethod
    def piece(cls, chunk: Chunk) -> str:
        return ""

    def reader(self, tp: Any) -> RecordReader:
        return _Maker(self.record_of, tp)

    def place(self, chunk: Chunk, position: int) -> str:
        return f"row {position}"

    def spot(self, chunk: Chunk, position: int) -> dict[str, Any]:
        return {"row": position}


class _Clockwork(Planner):
    """Counts rows, by the wall clock if there is a rate; what was due in a pause comes after it."""

    def __init__(self, feed: Generated, now: Callable[[], float]) -> None:
        self._feed = feed
        self._now = now
        self._began = now()
        self._next = 0
        self._until: int | None = None

    def note(self, chunk: Chunk) -> None:
        self._next = chunk.end
        self._began = chunk.about["began"]

    def freeze(self) -> None:
        self._until = self._due() if self._feed.total is None else self._feed.total

    def _due(self) -> int:
        """How many rows there are now."""
        total, rate = self._feed.total, self._feed.rows_per_second
        if rate is None:
            return total or 0
        by_now = 1 + int(max(self._now() - self._began, 0) * rate)
        return by_now if total is None else min(by_now, total)

    def has_input(self) -> bool:
        return self._next < self._due()

    def take(self) -> list[Chunk]:
        until = self._due() if self._until is None else self._until
        end = min(until, self._next + self._feed.max_rows_per_epoch)
        return [Chunk(0, self._next, end, {"began": self._began})] if end > self._next else []


class _Maker(RecordReader):
    def __init__(self, record_of: Callable[[int], Any], tp: Any) -> None:
        self._record_of = record_of
        self._type = tp

    def runs(self, chunk: Chunk) -> Iterator[Run]:
        for start in range(chunk.start, chunk.end, RUN_ROWS):
            numbers = range(start, min(start + RUN_ROWS, chunk.end))
            yield Run(numbers, numbers)

    def decode_one(self, raw: int) -> Any:
        try:
            return msgspec.convert(msgspec.to_builtins(self._made(raw)), self._type)
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, msgspec.MsgspecError):
                raise
            raise BadRecord(str(error)) from None

    def _made(self, number: int) -> Any:
        try:
            return self._record_of(number)
        except CutwaterError:
            raise
        except (Exception, SystemExit) as error:
            name = getattr(self._record_of, "__name__", type(self._record_of).__name__)
            raise InputError(
                Problem(
                    "generator-failed",
                    f"{name}({number}), which makes rows of a source, failed: "
                    f"{type(error).__name__}: {error}",
                    "correct the function; a source calls it with 0, 1, 2, …",
                )
            ) from error

    def text(self, raw: int) -> bytes:
        try:
            return repr(self._made(raw)).encode("utf-8", "replace")
        except RecursionError:
            return b"(nested too deeply to be shown)"

    def count(self, chunk: Chunk) -> int:
        return int(chunk.end - chunk.start)
