"""How a generation begins: what it goes on from, and where its new ticks start (rules 1, 5, 6)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from cutwater.spark.checkpoint.offset_log import SourcePlan
from cutwater.spark.job.spec import Job
from cutwater.spark.realtime.plan_log import Plan, PlannedTick, read_plan, write_plan
from cutwater.spark.realtime.positions import read_position
from cutwater.spark.realtime.snapshots import Snapshots
from cutwater.spark.storage.durable import make_folder, read_json, sync_folder, write_json

__all__ = ["Opening", "newest_opening", "open_generation", "source_plan"]

_FOLDER = "realtime"
_WHAT = "the beginning of a generation of a real-time run"


@dataclass(frozen=True)
class Opening:
    """What every task of a generation is told; durable before any of them begins."""

    checkpoint: str
    generation: int
    sources: tuple[str, ...]
    """In the order of the numbers of their readers."""
    levels: int
    partitions: int
    first_tick: int
    """New ticks begin here; those before are replayed as planned (rule 1)."""
    origin: float
    """The wall clock at tick 0."""
    snapshot_ticks: int
    """Every so many ticks there is a snapshot."""

    @property
    def folder(self) -> Path:
        """What belongs to this generation alone."""
        return Path(self.checkpoint) / _FOLDER / str(self.generation)

    @property
    def snapshots(self) -> Snapshots:
        """The snapshots of all its tasks."""
        return Snapshots(self.folder / "snapshots", self.levels, self.partitions)

    def plan_path(self, source: str) -> Path:
        """The file with the plan of a source."""
        return self.folder / "plan" / f"{source}.log"

    def reader_position(self, number: int) -> Path:
        """Where a reader tells how far it has planned, and if it has caught up."""
        return self.folder / "positions" / f"reader-{number}"

    def released_position(self, partition: int) -> Path:
        """Where a task of the last level tells how far its sinks are."""
        return self.folder / "positions" / f"released-{partition}"

    def released(self) -> int:
        """All sinks have all rows up to this tick, at least."""
        return min(
            read_position(self.released_position(partition))[0]
            for partition in range(self.partitions)
        )

    def planned(self) -> int:
        """The newest tick that any reader has planned records for, at least."""
        return max(
            read_position(self.reader_position(number))[0] for number in range(len(self.sources))
        )

    def has_caught_up(self) -> bool:
        """Have all readers read what was there, and all sinks got what became of it?"""
        told = [read_position(self.reader_position(n), 1) for n in range(len(self.sources))]
        return all(flag for _, flag in told) and self.released() >= self.planned()

    def plans(self) -> Iterator[Plan]:
        """The plans of its sources, in their order."""
        return (read_plan(self.plan_path(source)) for source in self.sources)

    def known_ticks(self) -> Iterator[int]:
        """The newest ticks in any plan or snapshot."""
        yield self.first_tick - 1
        yield from (plan.newest for plan in self.plans())
        yield from (stored.through for stored in self.snapshots.all_stored())

    def tick_now(self, tick_s: float, now: float) -> int:
        """The number of the current tick by the clock."""
        return int((now - self.origin) / tick_s)


def source_plan(job: Job, source: str, now: Callable[[], float] = time.time) -> SourcePlan:
    """What plans a source."""
    feed, tp = job.feed_of(source), job.source_step(source).type
    return SourcePlan(feed, tp, job.clock_of(source), now)


def _generations(checkpoint: Path) -> list[int]:
    folder = checkpoint / _FOLDER
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdigit())


def newest_opening(checkpoint: Path) -> Opening | None:
    """The newest generation that was opened; None if none was."""
    for generation in reversed(_generations(checkpoint)):
        kept = read_json(checkpoint / _FOLDER / str(generation) / "opening.json", _WHAT)
        if kept is not None:
            return Opening(**{**kept, "sources": tuple(kept["sources"])})
    return None


def open_generation(
    job: Job, *, partitions: int, snapshot_ticks: int, tick_s: float, now: float
) -> Opening:
    """Begin a generation; its sinks are claimed, so nobody else releases anything (rule 6).

    Its folder gets what it needs of the generation before. Whatever a process of an earlier run
    still writes goes where nobody looks.
    """
    checkpoint = Path(job.checkpoint)
    before = newest_opening(checkpoint)
    origin = before.origin if before else now
    in_sinks = [sink.newest_epoch(name, job.query_id) for name, sink in job.sinks.items()]
    known = [*(before.known_ticks() if before else ()), *(t for t in in_sinks if t is not None)]
    first = max([*known, int((now - origin) / tick_s)]) + 1
    is_to_end = job.is_ending and not (before and any(p.is_ending for p in before.plans()))
    end = (PlannedTick(first, (), is_end=True),) if is_to_end else ()
    opening = Opening(
        checkpoint=job.checkpoint,
        generation=job.generation,
        sources=tuple(sorted(job.sources)),
        levels=max(len(job.levels), 1),
        partitions=partitions,
        first_tick=first + len(end),
        origin=origin,
        snapshot_ticks=snapshot_ticks,
    )
    shutil.rmtree(opening.folder, ignore_errors=True)
    make_folder(opening.folder / "plan")
    tick = before.snapshots.common() if before else -1
    for source in opening.sources:
        found = read_plan(before.plan_path(source)) if before else Plan()
        base = source_plan(job, source).condensed(found.chunks_through(tick))
        ticks = (*found.after(tick), *end)
        write_plan(opening.plan_path(source), Plan(tuple(base), tick, ticks))
    if before:
        before.snapshots.copy_to(opening.snapshots, tick)
    sync_folder(opening.folder)
    write_json(opening.folder / "opening.json", asdict(opening))
    for generation in _generations(checkpoint):
        if generation < job.generation:
            shutil.rmtree(checkpoint / _FOLDER / str(generation), ignore_errors=True)
    return opening
