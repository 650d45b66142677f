"""Opens a generation: what it resumes from, and where its new ticks start (rules 1, 5, 6, 11)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

import msgspec

from cutwater.endings import OF_STORAGE, of_machine
from cutwater.errors import CutwaterError, RefusedError, embed, extract
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.offset_log import SourcePlan
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.job.spec import Job
from cutwater.spark.realtime.digests import copy_digests
from cutwater.spark.realtime.plan_log import WHAT, PlannedTick, TickPlan, read_plan, write_plan
from cutwater.spark.realtime.positions import read_position, read_reader
from cutwater.spark.realtime.protocol import TICK_S
from cutwater.spark.realtime.snapshots import Snapshots, lacks_snapshots
from cutwater.spark.realtime.unreleased import newest_released, without_unreleased
from cutwater.spark.storage.durable import damaged, make_folder, read_json, sync_folder, write_json

__all__ = ["Opening", "newest_opening", "open_generation", "source_plan"]

_FOLDER = "realtime"
_POSITIONS = "positions"
_WHAT = "the beginning of a generation of a real-time run"


@dataclass(frozen=True)
class Opening:
    """What every task of a generation needs to know; durable before any of them starts."""

    checkpoint: str
    generation: int
    sources: tuple[str, ...]
    """In the order of their readers' numbers."""
    levels: int
    partitions: int
    first_tick: int
    """New ticks begin here; those before are replayed as planned (rule 1)."""
    origin: float
    """The wall clock at tick 0."""
    snapshot_ticks: int
    """The number of ticks between snapshots."""
    readers: int = 1
    """How many tasks read each source: the first one plans, the others read a share."""
    code: str = ""
    """The fingerprint of the flow; a replay by another flow is detected by it."""

    @cached_property
    def folder(self) -> Path:
        """What belongs to this generation alone."""
        return Path(self.checkpoint) / _FOLDER / str(self.generation)

    @property
    def snapshots(self) -> Snapshots:
        """The snapshots of all its tasks."""
        return Snapshots(self.folder / "snapshots", self.levels, self.partitions)

    @property
    def senders(self) -> int:
        """All readers of all sources; those of one source have numbers one after the other."""
        return len(self.sources) * self.readers

    @property
    def slots(self) -> int:
        """How many tasks run at once: all readers, and all partitions of all levels."""
        return self.senders + self.levels * self.partitions

    def source_of(self, number: int) -> str:
        """The source of a reader."""
        return self.sources[number // self.readers]

    def leader_of(self, number: int) -> int:
        """The first reader of the same source."""
        return number - number % self.readers

    def leaders(self) -> range:
        """The first readers of all sources, in their order."""
        return range(0, self.senders, self.readers)

    def share_of(self, number: int, chunks: Sequence[Chunk]) -> list[Chunk]:
        """The chunks of a tick that a reader reads: those of its partitions, or files."""
        mine = number % self.readers
        return [c for c in chunks if not c.is_decision and c.number % self.readers == mine]

    def receivers(self, labels: Sequence[int]) -> dict[int, int]:
        """Which partition works on which bucket, by the bucket's label."""
        return {label: bucket % self.partitions for bucket, label in enumerate(labels)}

    def plan_path(self, source: str) -> Path:
        """The file with the plan of a source."""
        return self.folder / "plan" / f"{source}.log"

    def reader_position(self, number: int) -> Path:
        """Where a reader reports how far it has planned, and whether it has caught up."""
        return self.folder / _POSITIONS / f"reader-{number}"

    def released_position(self, partition: int) -> Path:
        """Where a task of the last level reports how far its sinks are."""
        return self.folder / _POSITIONS / f"released-{partition}"

    def digest_path(self, level: int, partition: int) -> Path:
        """Where a task records the digests of what it released."""
        return self.folder / "digests" / f"{level}.{partition}"

    def tasks(self) -> Iterator[tuple[int, int]]:
        """The level and the partition of each operator."""
        return ((level, p) for level in range(self.levels) for p in range(self.partitions))

    def snapshot_position(self, level: int, partition: int) -> Path:
        """Where a task reports the progress of its snapshots."""
        return self.folder / _POSITIONS / f"snapshot-{level}.{partition}"

    @cached_property
    def _polled(self) -> tuple[list[Path], list[Path]]:
        """The positions of operators and of readers, which readers poll."""
        released = [self.released_position(partition) for partition in range(self.partitions)]
        return released, [self.reader_position(number) for number in self.leaders()]

    def released(self) -> int:
        """All sinks have all rows up to at least this tick."""
        return min(read_position(path)[0] for path in self._polled[0])

    def planned(self) -> int:
        """The newest tick that any reader has planned records for, at least."""
        return max(read_reader(path).planned for path in self._polled[1])

    def has_caught_up(self) -> bool:
        """Have all readers read the available input, and all sinks received its results?"""
        positions = [read_reader(self.reader_position(number)) for number in self.leaders()]
        return all(each.is_caught_up for each in positions) and self.released() >= self.planned()

    @contextmanager
    def noting_failure(self) -> Iterator[None]:
        """Around a task: record why it failed, as our own error, for the driver.

        Tasks that exchange rows with it fail as well, and Spark reports only the first failure that
        it sees.
        """
        try:
            yield
        except CutwaterError as error:
            self._note_failure(error)
            raise
        except OSError as error:
            if error.errno in OF_STORAGE:  # not since a neighbour is gone
                self._note_failure(of_machine(error))
            raise

    def _note_failure(self, error: CutwaterError) -> None:
        with suppress(OSError):
            self._failure.write_text(embed(error))

    def failure(self) -> CutwaterError | None:
        """Why a task failed, if it was with our own error."""
        return (
            extract(self._failure.read_text(errors="replace")) if self._failure.exists() else None
        )

    @property
    def _failure(self) -> Path:
        return self.folder / "failure"

    def plans(self) -> Iterator[TickPlan]:
        """The plans of its sources, in their order."""
        return (read_plan(self.plan_path(source)) for source in self.sources)

    def known_ticks(self) -> Iterator[int]:
        """The newest ticks in any plan or snapshot."""
        yield self.first_tick - 1
        yield from (plan.newest for plan in self.plans())
        yield from (stored.through for stored in self.snapshots.all_stored())

    def time_of(self, tick: int) -> float:
        """When a tick was, in seconds of the wall clock."""
        return self.origin + tick * TICK_S

    def tick_at(self, now: float) -> int:
        """The number of the tick at a time of the wall clock."""
        return int((now - self.origin) / TICK_S)


def source_plan(job: Job, source: str, now: Callable[[], float] = time.time) -> SourcePlan:
    """The planner of a source."""
    connector, tp = job.connector_of(source), job.topology.source_step(source).type
    return SourcePlan(connector, tp, job.watermark_tracker_of(source), now)


def _generations(checkpoint: Path) -> list[int]:
    folder = checkpoint / _FOLDER
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdigit())


def newest_opening(checkpoint: Path) -> Opening | None:
    """The newest generation that was opened; None if there is none."""
    for generation in reversed(_generations(checkpoint)):
        path = _opening_path(checkpoint, generation)
        kept = read_json(path, _WHAT)
        if kept is not None:
            try:  # the checkpoint may have been moved since
                return msgspec.convert({**kept, "checkpoint": str(checkpoint)}, Opening)
            except (msgspec.ValidationError, TypeError) as error:
                raise damaged(path, _WHAT, error) from None
    for generation in _generations(checkpoint)[-1:]:
        path = _opening_path(checkpoint, generation)
        # Its tasks have begun, so it was open; in this order, since it may be opened meanwhile.
        if (path.parent / _POSITIONS).is_dir() and not path.exists():
            raise damaged(path, _WHAT, FileNotFoundError("it is missing"))
    return None


def _opening_path(checkpoint: Path, generation: int) -> Path:
    return checkpoint / _FOLDER / str(generation) / "opening.json"


def open_generation(
    job: Job, *, partitions: int, snapshot_ticks: int, now: float, readers: int = 1
) -> Opening:
    """Open a generation; its sinks are claimed, so no other run can release anything (rule 6).

    Its folder gets what it needs of the generation before. A zombie of an earlier run keeps writing
    to the old folder, which is no longer read.
    """
    checkpoint = Path(job.checkpoint)
    folder = checkpoint / _FOLDER / str(job.generation)
    before = newest_opening(checkpoint)
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder / "plan")
    found = _inherit(before, folder) if before else _Inherited()
    in_sinks = [sink.newest_epoch(name, job.query_id) for name, sink in job.sinks.items()]
    origin = before.origin if before else now
    known = [found.known, *(t for t in in_sinks if t is not None)]
    first = max([*known, int((now - origin) / TICK_S)]) + 1
    released = newest_released(job, list(found.plans.values()), found.common) if before else -1
    plans = _plans_to_replay(job, found, released)
    is_to_end = job.is_ending and not any(plan.is_ending for plan in plans.values())
    end = (PlannedTick(first, (), is_end=True),) if is_to_end else ()
    opening = Opening(
        checkpoint=job.checkpoint,
        generation=job.generation,
        sources=tuple(sorted(job.sources)),
        levels=max(len(job.topology.levels), 1),
        partitions=partitions,
        first_tick=first + len(end),
        origin=origin,
        snapshot_ticks=snapshot_ticks,
        readers=readers,
        code=identity_of(job, partitions).code,
    )
    for source in opening.sources:
        plan = plans.get(source, TickPlan())
        write_plan(opening.plan_path(source), replace(plan, ticks=(*plan.ticks, *end)))
    if before and before.code == opening.code:  # the same flow replays its ticks (rule 10)
        copy_digests(before.folder / "digests", opening.folder / "digests", released)
    sync_folder(opening.folder)
    write_json(opening.folder / "opening.json", asdict(opening))
    for generation in _generations(checkpoint):
        if generation < job.generation:
            shutil.rmtree(checkpoint / _FOLDER / str(generation), ignore_errors=True)
    return opening


@dataclass(frozen=True)
class _Inherited:
    """What a generation takes over of the one before."""

    plans: Mapping[str, TickPlan] = field(default_factory=dict)
    common: int = -1
    """The newest snapshot that all tasks have."""
    known: int = -1
    """The newest tick in any plan or snapshot."""


def _inherit(before: Opening, folder: Path) -> _Inherited:
    """Copy the snapshots, then read the plans: a zombie may still write both.

    In this order the plans have every tick whose records are in a snapshot that was copied. They
    lack a tick that is in no copy if the zombie has compacted them meanwhile; then all is copied
    again. If nothing has changed since, files are missing.
    """
    last: tuple[int, int] | None = None
    while True:
        least = before.snapshots.common()
        copied = before.snapshots.copied_to(folder / "snapshots")
        plans = {source: _plan_of(before, source) for source in before.sources}
        common = copied.common()
        wanted = max([least, *(plan.through for plan in plans.values())])
        if common >= wanted:
            break
        if (common, wanted) == last:
            raise RefusedError(lacks_snapshots(before.snapshots.folder, common))
        last = common, wanted
    stored = [each.through for each in copied.all_stored()]
    known = max([before.first_tick - 1, *(plan.newest for plan in plans.values()), *stored])
    for task in copied.tasks():
        task.drop_after(common)  # rule 5
    return _Inherited(plans, common, known)


def _plan_of(opening: Opening, source: str) -> TickPlan:
    """The plan of a source, which every generation has."""
    path = opening.plan_path(source)
    if not path.exists():
        raise damaged(path, WHAT, FileNotFoundError("it is missing"))
    return read_plan(path)


def _plans_to_replay(job: Job, found: _Inherited, released: int) -> dict[str, TickPlan]:
    """For each source, what comes after the snapshot and may have been released (rules 5, 11)."""
    return {
        source: TickPlan(
            tuple(source_plan(job, source).condensed(plan.chunks_through(found.common))),
            found.common,
            without_unreleased(plan, found.common, released),
        )
        for source, plan in found.plans.items()
        if source in job.sources
    }
