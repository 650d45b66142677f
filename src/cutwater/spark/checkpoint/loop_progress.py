"""How far a loop is that feeds back through a log, by the offsets of the newest epoch."""

from __future__ import annotations

from dataclasses import dataclass

from cutwater.spark.checkpoint.compatibility import Identity
from cutwater.spark.checkpoint.store import Checkpoint

__all__ = ["LoopProgress", "loop_progress"]


@dataclass(frozen=True)
class LoopProgress:
    """Where a loop is."""

    loop: str
    round: int | None
    """The round of the newest epoch; None: nothing goes round, and all that left is shown."""
    shown_up_to: int
    """The newest epoch that showed what had left; -1: none."""


def loop_progress(checkpoint: Checkpoint, identity: Identity) -> LoopProgress | None:
    """Where the loop is that the newest epoch is of; None if no loop feeds back through a log."""
    if not identity.logs or identity.is_closed:
        return None
    newest = checkpoint.next_epoch() - 1
    offsets = checkpoint.offsets(newest)[-len(identity.logs) :]
    again, left = (offset or {"entry": 0} for offset in (offsets or [None, None]))
    name = next(iter(identity.logs)).partition(": ")[2]
    is_empty = left["entry"] > newest
    turns = again.get("round", 0) if again.get("since") == left["entry"] else 0
    return LoopProgress(name, None if is_empty else turns, left["entry"] - 1)
