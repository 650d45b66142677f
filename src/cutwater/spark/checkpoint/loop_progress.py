"""The progress of a loop that feeds back through a log, read from Spark's offset log alone.

An *input epoch* has the number of the epoch that read it from the sources: its round 0. While the
loop is not empty, the offset of the log of results records, for each planned epoch, which input
epochs are in it. So epochs that Spark has purged from its log are never needed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from cutwater.spark.checkpoint.compatibility import Identity
from cutwater.spark.checkpoint.store import Checkpoint

__all__ = [
    "PLANNED",
    "InputEpoch",
    "LoopProgress",
    "inside_after",
    "loop_progress",
    "offset_of_left",
    "released_after",
]

PLANNED = "planned"
"""The key for the planned epoch, in an offset of the log of results."""
_INSIDE = "in the loop"


@dataclass(frozen=True)
class InputEpoch:
    """An input epoch in a loop."""

    number: int
    """The epoch that read it."""
    round: int
    """Its newest iteration."""
    entries: dict[str, int]
    """The newest entry that it read of the log of each source."""
    is_end: bool = False
    """Is it the end of the input?"""


@dataclass(frozen=True)
class LoopProgress:
    """The progress of a loop: which input epochs are in it."""

    loop: str
    round: int | None
    """The newest iteration of its oldest input epoch; None: the loop is empty."""
    input_epochs: tuple[InputEpoch, ...]
    """The input epochs in it, oldest first."""
    released: dict[str, int]
    """The newest entry of each source that the newest released input epoch read; empty: none."""

    @property
    def message(self) -> str:
        """Its progress as a phrase, for messages."""
        rounds = [str(each.round) for each in self.input_epochs]
        if not rounds:
            return "is empty"
        if len(rounds) == 1:
            return f"is in round {rounds[0]}"
        message = f"{', '.join(rounds[:-1])} and {rounds[-1]}"
        return f"has {len(rounds)} input epochs in it, in rounds {message}"


def offset_of_left(planned: int, inside: Collection[InputEpoch], oldest: int) -> dict[str, Any]:
    """The offset of the log of results for a planned epoch.

    `inside` are the input epochs that stay in the loop, and `oldest` is the first one that the
    epoch may read.
    """
    return {"entry": oldest, PLANNED: planned, _INSIDE: [asdict(each) for each in inside]}


def inside_after(checkpoint: Checkpoint, sources: Collection[str], epoch: int) -> list[InputEpoch]:
    """The input epochs that are in the loop after an epoch, oldest first."""
    left = _left(checkpoint, epoch)
    found = [InputEpoch(**each) for each in left.get(_INSIDE, ())]
    for read in range(left.get(PLANNED, 0), epoch + 1):  # more than one if epochs read nothing
        before, after = (_read(checkpoint, sources, n) for n in (read - 1, read))
        if before != after:
            entries = {name: int(offset["entry"]) for name, offset in after.items()}
            is_end = any("end" in offset for offset in after.values())
            found.append(InputEpoch(read, 0, entries, is_end))
    return found


def loop_progress(checkpoint: Checkpoint, identity: Identity) -> LoopProgress | None:
    """The progress of the loop as of the newest epoch; None if no loop feeds back through a log."""
    if not identity.logs or identity.is_closed:
        return None
    newest = checkpoint.next_epoch() - 1
    inside = inside_after(checkpoint, identity.sources, newest)
    name = next(iter(identity.logs)).partition(": ")[2]
    oldest = inside[0].round if inside else None
    return LoopProgress(name, oldest, tuple(inside), released_after(checkpoint, newest))


def released_after(checkpoint: Checkpoint, epoch: int) -> dict[str, int]:
    """The newest entry of each source read by the newest input epoch released by an epoch."""
    return dict(_left(checkpoint, epoch).get("released", {}))


def _left(checkpoint: Checkpoint, epoch: int) -> dict[str, Any]:
    """The offset of the log of results: the last of an epoch's offsets."""
    return (checkpoint.offsets(epoch) or [None])[-1] or {}


def _read(checkpoint: Checkpoint, sources: Collection[str], epoch: int) -> dict[str, Any]:
    offsets = checkpoint.offsets(epoch) or [None] * len(sources)
    pairs = zip(sorted(sources), offsets, strict=False)
    return {name: offset or {"entry": 0} for name, offset in pairs}
