"""Which records belong to which tick: the plan of a source, durable before its border leaves.

A file of lines, each with a sum. The first line is what a start needs of ticks before; each other
line is a tick with records, or with a decision about its watermark. A tick without a line is
empty. A line that was cut off by a crash is as if it had never been: its border has not left.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import xxhash

from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.storage.durable import sync_file, write_file

__all__ = ["Plan", "PlanLog", "PlannedTick", "read_plan", "write_plan"]


@dataclass(frozen=True)
class PlannedTick:
    """What a source reads in a tick."""

    tick: int
    chunks: tuple[Chunk, ...]
    is_end: bool = False
    """Does the input of all sources end in it?"""


@dataclass(frozen=True)
class Plan:
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
    """What a line says; None if it was not written whole."""
    total, _, text = line.rstrip(b"\n").partition(b" ")
    is_whole = line.endswith(b"\n") and total == b"%016x" % xxhash.xxh64_intdigest(text)
    found: dict[str, Any] | None = json.loads(text) if is_whole else None
    return found


def _chunks(kept: Sequence[dict[str, Any]]) -> tuple[Chunk, ...]:
    return tuple(map(Chunk.of_json, kept))


def _read(path: Path) -> tuple[Plan, int]:
    """The plan in a file, and how many bytes of it are whole."""
    plan, size = Plan(), 0
    if not path.exists():
        return plan, size
    ticks = []
    with path.open("rb") as file:
        for number, line in enumerate(file):
            said = _parsed(line)
            if said is None:
                break
            size += len(line)
            if number == 0:
                plan = Plan(_chunks(said["base"]), said["through"])
            else:
                is_end = said.get("end", False)
                ticks.append(PlannedTick(said["tick"], _chunks(said["chunks"]), is_end))
    return Plan(plan.base, plan.through, tuple(ticks)), size


def read_plan(path: Path) -> Plan:
    """The plan in a file; an empty one if there is none."""
    return _read(path)[0]


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan anew, durably and at once."""
    lines = [_line({"base": [c.to_brief_json() for c in plan.base], "through": plan.through})]
    lines += [_tick_line(planned) for planned in plan.ticks]
    write_file(path, b"".join(lines))


def _tick_line(planned: PlannedTick) -> bytes:
    said = {"tick": planned.tick, "chunks": [chunk.to_json() for chunk in planned.chunks]}
    return _line({**said, "end": True} if planned.is_end else said)


class PlanLog:
    """The plan of a source, to which its reader appends; one reader at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.plan, size = _read(path)
        self._file: BinaryIO = path.open("r+b")
        self._file.truncate(size)
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
        """How many bytes there are."""
        return os.fstat(self._file.fileno()).st_size
