"""A follower: a reader that reads its share of what the first reader of its source planned.

Only the first reader plans, so a source has one plan and one watermark, however many readers it
has. A follower acts on a tick only when the first reader has reported it as decided, which happens
once the entry is durable (rule 2).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.job.spec import Job
from cutwater.spark.operators.reading import Reading
from cutwater.spark.realtime.opening import Opening
from cutwater.spark.realtime.plan_log import PlannedTick, parse_line
from cutwater.spark.realtime.positions import read_reader
from cutwater.spark.realtime.wire import barrier_rows, tick_rows

__all__ = ["FollowerTask", "PlanTail"]

_POLL_S = 0.001
"""How often a follower polls the position of the first reader, by reading a file."""
_IDLE_POLL_S = 0.005
"""The same after a poll that found nothing, to leave the CPU to the operators."""


class PlanTail:
    """Reads a plan while the first reader appends to it, and sometimes compacts it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._pending: list[PlannedTick] = []
        self._rest = b""

    def ticks(self, after: int, through: int) -> list[PlannedTick]:
        """The planned ticks after one and up to another, all of which are durable."""
        self._reopen_if_compacted()
        self._read()
        known = [each for each in self._pending if each.tick > after]
        self._pending = [each for each in known if each.tick > through]
        return [each for each in known if each.tick <= through]

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _reopen_if_compacted(self) -> None:
        if self._file and os.fstat(self._file.fileno()).st_ino == self._path.stat().st_ino:
            return
        self.close()
        self._file = self._path.open("rb")
        self._file.readline()  # skip the base: what came before the first tick
        self._pending, self._rest = [], b""

    def _read(self) -> None:
        assert self._file is not None
        lines = (self._rest + self._file.read()).splitlines(keepends=True)
        self._rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        self._pending += [parse_line(line) for line in lines]


class FollowerTask:
    """A reader of a share of one source during one Spark batch."""

    def __init__(
        self,
        job: Job,
        opening: Opening,
        number: int,
        batch: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._opening, self._number, self._batch, self._sleep = opening, number, batch, sleep
        source = opening.source_of(number)
        self._leader = opening.reader_position(opening.leader_of(number))
        self._tail = PlanTail(opening.plan_path(source))
        self._reading = Reading(job, source)
        self._receivers = opening.receivers(job.addresses.labels)
        self._sent = opening.snapshots.common()

    def rows(self, is_over: Callable[[], bool]) -> Iterator[pa.RecordBatch]:
        """Send decided ticks until the batch is over."""
        try:
            while not is_over():
                before = self._sent
                yield from self.step()
                self._sleep(_POLL_S if self._sent > before else _IDLE_POLL_S)
        finally:
            self.close()

    def close(self) -> None:
        """Release its files."""
        self._tail.close()

    def step(self) -> Iterator[pa.RecordBatch]:
        """Send what was decided since the last call."""
        position = read_reader(self._leader)
        if position.batch != self._batch or position.decided <= self._sent:
            return  # decisions of an earlier batch may change
        for planned in self._tail.ticks(self._sent, position.decided):
            share = self._opening.share_of(self._number, planned.chunks)
            if share:  # else the barrier of a later tick covers it
                yield from self._send(planned.tick, share)
        if position.decided > self._sent:
            self._sent = position.decided
            yield from barrier_rows(self._number, position.decided, self._opening.partitions)

    def _send(self, tick: int, share: Sequence[Chunk]) -> Iterator[pa.RecordBatch]:
        self._sent = tick
        yield from tick_rows(
            self._number,
            tick,
            self._reading.rows(share),
            self._receivers,
            self._opening.partitions,
        )
