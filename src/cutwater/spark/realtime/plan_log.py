"""The plan of a source: which records belong to which tick; durable before its barrier is sent.

A file of lines, each with a checksum. The first line is what a start needs of earlier ticks; each
other line is a tick with records, or with a decision about its watermark. A tick without a line is
empty. A torn last line is ignored: a crash came before its barrier was sent. A damaged line with
others after it is refused, since their barriers were sent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import xxhash

from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.storage.durable import damaged, sync_file, write_file

__all__ = ["WHAT", "PlanLog", "PlannedTick", "TickPlan", "parse_line", "read_plan", "write_plan"]

WHAT = "the plan of a source"
"""The name of the log in messages about damage."""


@dataclass(frozen=True)
class PlannedTick:
    """What a source reads in a tick."""

    tick: int
    chunks: tuple[Chunk, ...]
    is_end: bool = False
    """Does the input of all sources end in it?"""


@dataclass(frozen=True)
class TickPlan:
    """What is in a plan."""

    base: tuple[Chunk, ...] = ()
    """How far the source was before the first tick."""
    through: int = -1
    """All ticks up to this one are in the base."""
    ticks: tuple[PlannedTick, ...] = ()

    @property
    def is_ending(self) -> bool:
        """Does the input end in it?"""
        return any(planned.is_end for planned in self.ticks)

    @property
    def last_chunk(self) -> Chunk | None:
        """How far the source is; None: nothing was read."""
        chunks = [*self.base, *(chunk for planned in self.ticks for chunk in planned.chunks)]
        return chunks[-1] if chunks else None

    @property
    def newest(self) -> int:
        """The newest tick that it knows of."""
        return self.ticks[-1].tick if self.ticks else self.through

    def after(self, tick: int) -> tuple[PlannedTick, ...]:
        """The ticks that come after one."""
        return tuple(planned for planned in self.ticks if planned.tick > tick)

    def chunks_through(self, tick: int) -> list[Chunk]:
        """The base and all chunks of ticks up to this one."""
        early = [p for p in self.ticks if p.tick <= tick]
        return [*self.base, *(chunk for planned in early for chunk in planned.chunks)]


def _line(value: dict[str, Any]) -> bytes:
    text = json.dumps(value, separators=(",", ":")).encode()
    return b"%016x %s\n" % (xxhash.xxh64_intdigest(text), text)


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The content of a line; None if it is torn."""
    total, _, text = line.rstrip(b"\n").partition(b" ")
    is_whole = line.endswith(b"\n") and total == b"%016x" % xxhash.xxh64_intdigest(text)
    found: dict[str, Any] | None = json.loads(text) if is_whole else None
    return found


def _chunks(kept: Sequence[dict[str, Any]]) -> tuple[Chunk, ...]:
    return tuple(map(Chunk.of_json, kept))


def _read(path: Path) -> tuple[TickPlan, int]:
    """The plan in a file, and the size in bytes of its intact part."""
    base, size = TickPlan(), 0
    if not path.exists():
        return base, size
    ticks: list[PlannedTick] = []
    with path.open("rb") as file:
        for number, line in enumerate(file):
            record = _parsed(line)
            if record is None:
                if number == 0 or (line.endswith(b"\n") and file.read(1)):
                    raise damaged(
                        path, WHAT, ValueError(f"line {number + 1} does not match its checksum")
                    )
                break
            size += len(line)
            try:
                if number == 0:
                    base = TickPlan(_chunks(record["base"]), record["through"])
                else:
                    ticks.append(_planned(record))
            except (KeyError, TypeError) as error:  # a whole line in another line's place
                raise damaged(path, WHAT, error) from None
    return replace(base, ticks=tuple(ticks)), size


def _planned(record: dict[str, Any]) -> PlannedTick:
    return PlannedTick(record["tick"], _chunks(record["chunks"]), record.get("end", False))


def parse_line(line: bytes) -> PlannedTick:
    """The tick of an intact line that is not the first."""
    record = _parsed(line)
    assert record is not None, "the line of a decided tick is intact"
    return _planned(record)


def read_plan(path: Path) -> TickPlan:
    """The plan in a file; an empty one if there is none."""
    return _read(path)[0]


def write_plan(path: Path, plan: TickPlan) -> None:
    """Rewrite a plan, durably and atomically."""
    lines = [_line({"base": [c.to_brief_json() for c in plan.base], "through": plan.through})]
    lines += [_tick_line(planned) for planned in plan.ticks]
    write_file(path, b"".join(lines))


def _tick_line(planned: PlannedTick) -> bytes:
    record = {"tick": planned.tick, "chunks": [chunk.to_json() for chunk in planned.chunks]}
    return _line({**record, "end": True} if planned.is_end else record)


class PlanLog:
    """The plan of a source, to which its reader appends; one reader at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.plan, size = _read(path)
        self._file: BinaryIO = path.open("r+b")
        if self.size > size:  # a torn line; a power loss must not bring it back before others
            self._file.truncate(size)
            sync_file(self._file)
        self._file.seek(size)

    def append(self, planned: PlannedTick) -> None:
        """Add a tick; it is durable when this returns."""
        self._file.write(_tick_line(planned))
        sync_file(self._file)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def size(self) -> int:
        """The size in bytes."""
        return os.fstat(self._file.fileno()).st_size
