"""As much of Spark's real-time mode as our engine uses, in one process: tasks, rows, kills."""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from cutwater.spark.connectors.base.side_outputs import late_events_sink
from cutwater.spark.connectors.base.sink import (
    EXACTLY_ONCE,
    Claim,
    Guarantee,
    Receipt,
    SinkConnector,
)
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.job.spec import Job
from cutwater.spark.realtime.opening import Opening, open_generation
from cutwater.spark.realtime.operator_task import OperatorTask
from cutwater.spark.realtime.plan_log import PlannedTick
from cutwater.spark.realtime.readers.follower_task import FollowerTask
from cutwater.spark.realtime.readers.reader_task import ReaderTask
from cutwater.spark.realtime.side_outputs import publish_side_outputs


class Killed(Exception):
    """The process is gone."""


@dataclass(frozen=True)
class MemorySink(SinkConnector):
    """A sink that shows rows at once, with a ledger of how far each bucket is."""

    name: str
    accepts = "lines"
    release = "early"
    shown_rows: ClassVar[dict[str, dict[int, list[bytes]]]] = {}
    shown_ticks: ClassVar[dict[str, dict[int, list[int]]]] = {}
    ledger: ClassVar[dict[str, dict[int, tuple[int, bytes]]]] = {}
    holder: ClassVar[dict[str, int]] = {}

    def guarantee(self) -> Guarantee:
        return Guarantee(EXACTLY_ONCE, "is a toy")

    @property
    def location(self) -> str:
        return self.name

    def newest_epoch(self, name: str, query_id: str) -> int | None:
        return max((epoch for epoch, _ in self.ledger.get(self.name, {}).values()), default=-1)

    def check(self, name: str, query_id: str | None, next_epoch: int) -> list[Any]:
        return []

    def generation(self, name: str) -> int:
        return self.holder.get(self.name, 0)

    def claim(self, claim: Claim) -> None:
        self.holder[self.name] = claim.generation

    def write(self, claim: Claim, epoch: int, record: Any, buckets: Any) -> Receipt:
        assert claim.generation == self.holder[self.name], "fenced"
        shown = self.shown_rows.setdefault(self.name, {})
        ledger = self.ledger.setdefault(self.name, {})
        for bucket in buckets:
            for order, value in zip(bucket.orders, bucket.values, strict=True):
                if (epoch, order) > ledger.get(bucket.label, (-1, b"")):
                    shown.setdefault(bucket.label, []).append(value)
                    ticks = self.shown_ticks.setdefault(self.name, {})
                    ticks.setdefault(bucket.label, []).append(epoch)
                    ledger[bucket.label] = (epoch, order)
        return Receipt(claim.sink)

    def publish(self, claim: Claim, epoch: int, receipts: Any) -> None:
        raise AssertionError("nothing is staged")

    def released(self, claim: Claim, epoch: int) -> str | None:
        newest = self.newest_epoch(claim.sink, claim.query_id)
        return "rows" if newest is not None and newest >= epoch else None

    def row_count(self, claim: Claim) -> int:
        return sum(map(len, self.shown_rows.get(self.name, {}).values()))


WAITING = object()
"""A follower has nothing to send; others have their turn."""


class Writing:
    """A snapshot that is being stored."""

    def __init__(self, rng: random.Random, write: Callable[[], Any]) -> None:
        self._random, self._write = rng, write
        self._found: list[Any] = []

    def done(self) -> bool:
        if not self._found and self._random.random() < 0.5:
            self.result()
        return bool(self._found)

    def result(self) -> Any:
        if not self._found:
            self._found.append(self._write())
        return self._found[0]


class SnapshotThread:
    """The thread that stores snapshots, as slow as is drawn: at once, later, or never."""

    def __init__(self, rng: random.Random) -> None:
        self._random = rng
        self._writing: Writing | None = None

    def submit(self, write: Callable[..., Any], *arguments: Any) -> Writing:
        self._writing = Writing(self._random, lambda: write(*arguments))
        return self._writing

    def shutdown(self) -> None:
        if self._writing:
            self._writing.done()


def row_by_row(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spark's shuffle takes the rows of a batch one by one, and may die between two of them."""
    for batch in batches:
        yield from (batch.slice(number, 1) for number in range(batch.num_rows))


def following(task: FollowerTask, is_over: Callable[[], bool]) -> Any:
    """What a follower sends, step by step."""
    while not is_over():
        yield from row_by_row(task.step())
        yield WAITING
    task.close()


@dataclass
class ToyRealTime:
    """A checkpoint, and runs over it one after the other."""

    job: Job
    random: random.Random
    partitions: int = 2
    snapshot_ticks: int = 7
    readers: int = 1
    batch: int = 0
    clock: float = 1000.0
    steps: int = 0
    kill_at: int | None = None
    planned: dict[int, dict[str, tuple[Chunk, ...]]] = field(default_factory=dict)
    """What each source planned for each tick, over all runs."""
    queues: dict[tuple[int, int, int], deque[pa.RecordBatch]] = field(default_factory=dict)

    def run(self, kill_at: int | None = None, batch_ends: int = 0, close: bool = False) -> None:
        """Run until all that is there was released, or be killed after so many steps."""
        number = self.job.generation + 1
        self.job = replace(self.job, query_id="toy", generation=number, is_ending=close)
        for name, sink in self.job.sinks.items():
            sink.claim(self.job.claim_of(name))
        opening = open_generation(
            self.job,
            partitions=self.partitions,
            snapshot_ticks=self.snapshot_ticks,
            readers=self.readers,
            now=self.clock,
        )
        self._forget_unreleased(opening)
        publish_side_outputs(self.job, opening)
        self.steps, self.kill_at = 0, kill_at
        for _ in range(batch_ends):
            self._batch(opening, steps=self.random.randrange(1, 60))
        self._batch(opening, steps=None)
        publish_side_outputs(self.job, opening)

    def _forget_unreleased(self, opening: Opening) -> None:
        """What a generation opens without was never planned, for anybody who looks."""
        common = opening.snapshots.common()
        known = {each.tick for plan in opening.plans() for each in plan.ticks}
        gone = [tick for tick in self.planned if tick > common and tick not in known]
        for tick in gone:
            del self.planned[tick]

    def _batch(self, opening: Opening, steps: int | None) -> None:
        self.queues = {}
        is_over = False
        self.batch += 1
        readers = [
            ReaderTask(self.job, opening, number, self.batch, lambda: self.clock, self._sleep)
            for number in opening.leaders()
        ]
        for task in readers:
            task.freeze()
            self._record(task)
        followers = [
            FollowerTask(self.job, opening, number, self.batch)
            for number in range(opening.senders)
            if number != opening.leader_of(number)
        ]
        operators = {
            (level, p): OperatorTask(self.job, opening, level, p)
            for level in range(opening.levels)
            for p in range(opening.partitions)
        }
        for number, operator in enumerate(operators.values()):
            seed = f"{self.batch} {number}"
            operator._thread = SnapshotThread(random.Random(seed))  # type: ignore[assignment]
        reading: dict[int, Any] = {
            task._number: row_by_row(task.rows(lambda: is_over)) for task in readers
        } | {task._number: following(task, lambda: is_over) for task in followers}
        try:
            while reading or any(self.queues.values()):
                if self._dies():
                    raise Killed
                steps = None if steps is None else steps - 1
                if (steps is not None and steps < 0) or self._is_done(opening, bool(reading)):
                    is_over = True
                filled = [place for place, queue in self.queues.items() if queue]
                if filled and (not reading or self.random.random() < 0.6):
                    self._deliver(operators, self.random.choice(filled))
                elif reading:
                    number = self.random.choice(list(reading))
                    row = next(reading[number], None)
                    if row is None:
                        del reading[number]
                    elif row is not WAITING:
                        self._send(0, number, row)
            for level in range(opening.levels):
                for p in range(opening.partitions):
                    operators[level, p].finish()
        finally:  # whatever ended it, a process that is gone holds no files
            for task in [*readers, *followers, *operators.values()]:
                task.close()

    def _record(self, task: ReaderTask) -> None:
        append = task._log.append

        def noting(planned: PlannedTick) -> None:
            append(planned)
            self.planned.setdefault(planned.tick, {})[task._source] = planned.chunks

        task._log.append = noting  # type: ignore[method-assign]

    def _sleep(self, seconds: float) -> None:
        self.clock += seconds * self.random.choice([0.0, 1.0, 3.0])

    def _is_done(self, opening: Opening, has_readers: bool) -> bool:
        if not has_readers:
            return False
        return opening.has_caught_up()

    def _send(self, level: int, sender: int, row: pa.RecordBatch) -> None:
        receiver = row.column("receiver")[0].as_py()
        self.queues.setdefault((level, sender, receiver), deque()).append(row)

    def _deliver(self, operators: dict[tuple[int, int], OperatorTask], place: Any) -> None:
        level, _, receiver = place
        for row in row_by_row(operators[level, receiver].accept(self.queues[place].popleft())):
            self._send(level + 1, receiver, row)

    def _dies(self) -> bool:
        self.steps += 1
        return self.kill_at is not None and self.steps >= self.kill_at


def toy_job(flow: Any, root: Path, sink: Callable[[str], SinkConnector] = MemorySink) -> Job:
    """A job whose sources are folders and whose sinks are in memory."""
    from cutwater.flow.steps import Sink as SinkStep
    from cutwater.flow.steps import Source
    from cutwater.spark import folder, json_lines

    sources = {
        s.name: json_lines(str(root / "in" / s.name), 64)
        for s in flow.steps
        if isinstance(s, Source)
    }
    sinks = {s.name: sink(f"{root}/{s.name}") for s in flow.steps if isinstance(s, SinkStep)}
    for step in flow.steps:
        if isinstance(step, Source) and step.watermark:
            sinks[late_events_sink(step.name)] = folder(str(root / "late" / step.name))
    for source in sources.values():
        Path(source.path).mkdir(parents=True, exist_ok=True)
    return Job(flow, sources, sinks, "", 0, 16, str(root / "checkpoint"))
