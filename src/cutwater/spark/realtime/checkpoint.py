"""A checkpoint of the real-time engine: how far its plans, snapshots and ledgers are, in ticks.

::

    checkpoint/
      cutwater.json, lock, sinks.json, ...   as of micro-batches
      realtime/<generation>/
        opening.json     what the generation goes on from; it is open once this is there
        plan/            which records belong to which tick, for each source
        snapshots/       the states of each task
        positions/       how far each task is; safe to delete
        spark/           Spark's own checkpoint, which nobody reads
"""

from __future__ import annotations

from pathlib import Path

from cutwater.errors import RefusedError
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.realtime.opening import Opening, newest_opening
from cutwater.spark.storage.local_paths import is_url, not_local

__all__ = ["RealTimeCheckpoint"]


class RealTimeCheckpoint(Checkpoint):
    """The folder of a checkpoint, in which a tick is an epoch."""

    plans_anew = False  # rule 1: a tick that was planned is replayed, shown or not

    @staticmethod
    def at(path: str | Path) -> RealTimeCheckpoint:
        """The checkpoint that a user names; a URL is refused."""
        if is_url(path):
            raise RefusedError(not_local("the checkpoint", path))
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

    def _opening(self) -> Opening | None:
        return newest_opening(self.root)
