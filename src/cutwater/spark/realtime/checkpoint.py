"""A checkpoint of the real-time engine: how far its plans, snapshots and ledgers are, in ticks.

::

    checkpoint/
      cutwater.json, lock, sinks.json, ...   as of micro-batches
      realtime/<generation>/
        opening.json     what the generation resumes from; it is open once this file exists
        plan/            which records belong to which tick, for each source
        snapshots/       the states of each task
        digests/         of what each task released, to compare a replay with
        positions/       how far each task is; safe to delete
        spark/           Spark's own checkpoint, unused
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from cutwater.errors import CutwaterError, RefusedError
from cutwater.spark.checkpoint.inspect import TickSummary
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.job.spec import REALTIME
from cutwater.spark.realtime.opening import Opening, newest_opening
from cutwater.spark.realtime.plan_log import TickPlan, read_plan
from cutwater.spark.storage.durable import read_json
from cutwater.spark.storage.local_paths import impossible, is_url, not_local

__all__ = ["RealTimeCheckpoint", "is_real_time"]


def is_real_time(root: Path) -> bool:
    """Is it a checkpoint of the real-time engine, even if it is damaged?"""
    try:
        kept = read_json(root / "cutwater.json", "the checkpoint's identity")
    except CutwaterError:
        kept = None
    named = kept.get("engine") if isinstance(kept, dict) else None
    return named == REALTIME if named else (root / "realtime").is_dir()


class RealTimeCheckpoint(Checkpoint):
    """The folder of a checkpoint, in which a tick is an epoch."""

    unit = "tick"
    logs_offsets = False  # `unreleased`: a generation opens without ticks that were not released

    @staticmethod
    def at(path: str | Path) -> RealTimeCheckpoint:
        """The checkpoint that a user names; a URL is refused."""
        if is_url(path):
            raise RefusedError(not_local("the checkpoint", path))
        if problems := list(impossible("the checkpoint", path)):
            raise RefusedError(problems)
        return RealTimeCheckpoint(Path(path).absolute())

    def next_epoch(self) -> int:
        """The first tick that no plan and no snapshot knows."""
        opening = self._opening()
        return max(opening.known_ticks()) + 1 if opening else 0

    def is_mid_epoch(self) -> bool:
        """Is there a tick with records that is in no snapshot?"""
        opening = self._opening()
        if opening is None:
            return False
        common = opening.snapshots.common()
        return any(plan.after(common) for plan in opening.plans())

    def first_unfinished(self) -> int:
        """The first tick that is in no snapshot."""
        opening = self._opening()
        return opening.snapshots.common() + 1 if opening else 0

    def is_ending(self) -> bool:
        """Is the end of the input planned?"""
        opening = self._opening()
        return opening is not None and any(plan.is_ending for plan in opening.plans())

    def finished_epochs(self) -> list[int]:
        """The newest tick that every task has stored, if there is one."""
        opening = self._opening()
        common = opening.snapshots.common() if opening else -1
        return [common] if common >= 0 else []

    def last_chunks(
        self, sources: Collection[str], epoch: int | None = None
    ) -> dict[str, Chunk | None]:
        """The last chunk that is planned for each source."""
        return {name: self._plan(name).last_chunk for name in sources}

    def read_chunks(self, source: str, note: Callable[[Chunk], None]) -> None:
        """Call `note` with each chunk in the plan of a source, in order."""
        plan = self._plan(source)
        for chunk in plan.chunks_through(plan.newest):
            note(chunk)

    def ticks(self) -> TickSummary:
        """How far its snapshots are."""
        opening = self._opening()
        if opening is None:
            return TickSummary(None, None, 0, 0)
        common = opening.snapshots.common()
        planned = {each.tick for plan in opening.plans() for each in plan.after(common)}
        is_there = common >= 0
        return TickSummary(
            common if is_there else None,
            opening.time_of(common) if is_there else None,
            len(planned),
            opening.snapshots.size(),
        )

    def _plan(self, source: str) -> TickPlan:
        opening = self._opening()
        return read_plan(opening.plan_path(source)) if opening else TickPlan()

    def _opening(self) -> Opening | None:
        return newest_opening(self.root)
