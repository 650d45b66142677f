"""A synthetic source for demonstrations: each record is a function of its number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from cutwater.errors import CutwaterError, InputError, Problem
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.source import (
    BadRecord,
    Chunk,
    Planner,
    RawBatch,
    RecordReader,
    Replay,
    SourceConnector,
)

__all__ = ["GENERATOR_BATCH_ROWS", "Generated"]

GENERATOR_BATCH_ROWS = 20_000
"""Rows that are generated and sent together."""


@dataclass(frozen=True)
class Generated(SourceConnector):
    """Records computed from the numbers 0, 1, 2, … by a function that must be deterministic."""

    record_of: Callable[[int], Any]
    """Returns the record of a number, or a dict of its fields."""
    total: int | None = None
    """The number of records; None: endless, limited only by the rate."""
    rows_per_second: float | None = None
    """Records per second since the source began; None: all at once."""
    max_rows_per_epoch: int = 100_000
    """The most records that one epoch reads."""
    idle_after: float | None = None
    """Seconds without input after which the source no longer holds back the watermark of others."""

    kind: ClassVar[str] = "generator"
    partitions_noun: ClassVar[str] = "generators"
    unit: ClassVar[str] = "rows"
    min_task_weight: ClassVar[int] = 1_000

    def problems(self, name: str, step: Source) -> Iterator[Problem]:
        if self.total is None and self.rows_per_second is None:
            yield Problem(
                "endless-generator",
                f"source '{name}' has neither a total nor a rate, so an epoch would never end",
                "give it a total, or rows_per_second",
            )
        for setting in ("total", "rows_per_second", "max_rows_per_epoch"):
            value = getattr(self, setting)
            if value is not None and not value > 0:
                yield Problem(
                    "no-progress",
                    f"{setting} of source '{name}' is {value}; it must be larger than 0",
                    f"leave {setting} out, or make it larger",
                )

    def replay(self) -> Replay:
        return Replay(
            True,
            "each row is a function of its number",
            "the function returns the same for a number each time",
        )

    def planner(self, tp: Any, now: Callable[[], float]) -> Planner:
        return _Clockwork(self, now)

    @classmethod
    def partition_name(cls, chunk: Chunk) -> str:
        return ""

    def reader(self, tp: Any) -> RecordReader:
        return _Maker(self.record_of, tp)

    def location(self, chunk: Chunk, position: int) -> str:
        return f"row {position}"

    def coordinates(self, chunk: Chunk, position: int) -> dict[str, Any]:
        return {"row": position}


class _Clockwork(Planner):
    """Counts rows, by the wall clock if there is a rate; rows due during a downtime follow it."""

    def __init__(self, source: Generated, now: Callable[[], float]) -> None:
        self._source = source
        self._now = now
        self._began = now()
        self._next = 0
        self._until: int | None = None

    def advance(self, chunk: Chunk) -> None:
        self._next = chunk.end
        self._began = chunk.about["began"]

    def freeze(self) -> None:
        self._until = self._due() if self._source.total is None else self._source.total

    def _due(self) -> int:
        """The number of rows available now."""
        total, rate = self._source.total, self._source.rows_per_second
        if rate is None:
            return total or 0
        by_now = 1 + int(max(self._now() - self._began, 0) * rate)
        return by_now if total is None else min(by_now, total)

    def has_input(self) -> bool:
        return self._next < self._due()

    def poll(self) -> list[Chunk]:
        until = self._due() if self._until is None else self._until
        end = min(until, self._next + self._source.max_rows_per_epoch)
        return [Chunk(0, self._next, end, {"began": self._began})] if end > self._next else []


class _Maker(RecordReader):
    def __init__(self, record_of: Callable[[int], Any], tp: Any) -> None:
        self._record_of = record_of
        self._type, self._types = tp, list[tp]

    def batches(self, chunk: Chunk) -> Iterator[RawBatch]:
        for start in range(chunk.start, chunk.end, GENERATOR_BATCH_ROWS):
            numbers = range(start, min(start + GENERATOR_BATCH_ROWS, chunk.end))
            yield RawBatch(numbers, numbers)

    def decode(self, raw_batch: RawBatch) -> Sequence[Any]:
        try:  # all at once: a call for each row would take as long as the function
            made = list(map(self._record_of, raw_batch.raws))
            found: list[Any] = msgspec.convert(msgspec.to_builtins(made), self._types)
            return found
        except (Exception, SystemExit):
            return super().decode(raw_batch)  # raises with the cause

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

    def preview(self, raw: int) -> bytes:
        try:
            return repr(self._made(raw)).encode("utf-8", "replace")
        except RecursionError:
            return b"(nested too deeply to be shown)"

    def count(self, chunk: Chunk) -> int:
        return int(chunk.end - chunk.start)
