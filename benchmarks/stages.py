"""Where the milliseconds of a real-time run go, seen from its source and its sink.

A source and a sink that stamp what passes through them, in files; and the parts of a side without
the guarantee. Workers import this module by its name.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unfenced import Unfenced

from cutwater.spark.connectors.base.sink import BucketRows, Claim
from cutwater.spark.connectors.base.source import Chunk, Planner
from cutwater.spark.connectors.generator.source import Generated
from cutwater.spark.connectors.postgres.sink import PostgresTable, Written
from cutwater.spark.realtime import plan_log

__all__ = ["STAGES", "StampedSource", "StampedTable", "StampedUnfenced", "stages_of"]

STAGES = {
    "planned": "due to polled ms",
    "durable": "polled to durable and decoded ms",
    "worked": "durable to worked on ms",
    "committed": "worked on to committed ms",
    "seen": "committed to seen ms",
}
"""What each stage of an event takes, from the one before it; the first from when it is due."""


def _stamp(folder: str, stage: str, first: int, end: int) -> None:
    with Path(folder, f"{os.getpid()}.stamps").open("a") as file:
        file.write(f"{stage} {first} {end} {time.time()}\n")


class _StampedPlanner(Planner):
    def __init__(self, planner: Planner, folder: str) -> None:
        self._planner, self._folder = planner, folder

    def advance(self, chunk: Chunk) -> None:
        _stamp(self._folder, "durable", chunk.start, chunk.end)
        self._planner.advance(chunk)

    def freeze(self) -> None:
        self._planner.freeze()

    def has_input(self) -> bool:
        return self._planner.has_input()

    def poll(self) -> list[Chunk]:
        chunks = self._planner.poll()
        for chunk in chunks:
            _stamp(self._folder, "planned", chunk.start, chunk.end)
        return chunks


@dataclass(frozen=True)
class StampedSource(Generated):
    """Generated records; notes when they were polled, and when their plan was durable."""

    stamps: str = ""
    """The folder of the notes; empty: none are made."""
    is_synced: bool = True
    """Does the reader wait until the plan is on the disk?"""

    def planner(self, tp: Any, now: Callable[[], float]) -> Planner:
        """The planner of generated records, with stamps."""
        if not self.is_synced:
            plan_log.sync_file = lambda file: file.flush()  # type: ignore[attr-defined]
        planner = super().planner(tp, now)
        return _StampedPlanner(planner, self.stamps) if self.stamps else planner


def _written(folder: str, buckets: Sequence[BucketRows], write: Callable[[], Written]) -> Written:
    found = [value.position for bucket in buckets for value in bucket.values]
    for position in found if folder else ():
        _stamp(folder, "worked", position, position + 1)
    written = write()
    for position in found if folder else ():
        _stamp(folder, "committed", position, position + 1)
    return written


@dataclass(frozen=True, kw_only=True)
class StampedTable(PostgresTable):
    """A table; notes when rows come to it, and when they are committed."""

    stamps: str = ""

    def write(
        self, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> Written:
        """Write rows."""
        return _written(
            self.stamps, buckets, lambda: PostgresTable.write(self, claim, epoch, record, buckets)
        )


@dataclass(frozen=True, kw_only=True)
class StampedUnfenced(Unfenced):
    """The same without a ledger."""

    stamps: str = ""

    def write(
        self, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> Written:
        """Write rows."""
        return _written(
            self.stamps, buckets, lambda: Unfenced.write(self, claim, epoch, record, buckets)
        )


def stages_of(
    folder: Path, due: Mapping[int, float], seen: Mapping[int, float]
) -> dict[str, float]:
    """The median of what each stage took, in ms, for events that were due and seen."""
    at: dict[str, dict[int, float]] = {"due": dict(due), "seen": dict(seen)}
    for path in folder.glob("*.stamps"):
        for line in path.read_text().splitlines():
            stage, first, end, stamp = line.split()
            for number in range(int(first), int(end)):
                if number in due:
                    at.setdefault(stage, {}).setdefault(number, float(stamp))
    names = ["due", *STAGES]
    return {
        STAGES[after]: statistics.median(
            1000 * (at[after][n] - at[before][n])
            for n in due
            if n in at.get(before, ()) and n in at.get(after, ())
        )
        for before, after in itertools.pairwise(names)
    }
