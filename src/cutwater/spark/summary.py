"""What a checkpoint holds, for people: whose it is, how far it is, how its state lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutwater.errors import RunError
from cutwater.spark.checkpoint import Checkpoint, no_checkpoint
from cutwater.spark.clock import newest_of
from cutwater.spark.entrylog import EntryLog
from cutwater.spark.filelog import Chunk

__all__ = ["CheckpointSummary", "SourceSummary", "describe"]


@dataclass(frozen=True)
class SourceSummary:
    """How far a source is."""

    files: int
    """Files that were read, or begun."""
    bytes: int
    """Bytes that were read, or planned for the epoch that is next."""
    newest_file: str | None
    newest_time: Any
    """The newest time as JSON has it, or the number of records; None if nobody asks for times."""
    is_idle: bool
    """Does it follow the others, since it has had no input for some time?"""


@dataclass(frozen=True)
class CheckpointSummary:
    """What a checkpoint holds."""

    flow: str
    generation: int
    """How many runs it has had."""
    next_epoch: int
    """The first epoch that it does not have."""
    is_mid_epoch: bool
    """Was the newest epoch begun and not finished? In a run that is normal."""
    buckets: int
    partitions: int
    rescaling_to: int | None
    """The number of partitions that the state was being moved to when that was cut off."""
    steps: list[str]
    """Steps that keep a state."""
    sources: dict[str, SourceSummary]
    is_closed: bool
    """Has the input ended? Then no run can follow."""


def describe(checkpoint: str | Path) -> CheckpointSummary:
    """What a checkpoint holds; nothing is written, and no session is needed."""
    place = Checkpoint(Path(checkpoint).absolute())
    identity = place.identity()
    if identity is None:
        raise RunError(no_checkpoint(place))
    return CheckpointSummary(
        flow=identity.flow,
        generation=identity.generation,
        next_epoch=place.next_epoch(),
        is_mid_epoch=place.is_mid_epoch(),
        buckets=identity.buckets,
        partitions=identity.partitions,
        rescaling_to=place.rescaling_to(),
        steps=sorted(identity.steps),
        sources={name: _source(place.root / "sources" / name) for name in identity.sources},
        is_closed=identity.is_closed,
    )


def _source(log: Path) -> SourceSummary:
    files, size, last = 0, 0, None

    def note(chunks: list[dict[str, Any]]) -> None:
        nonlocal files, size, last
        for last in chunks:
            files += last["start"] == 0 < last["end"]
            size += last["end"] - last["start"]

    EntryLog(log, "the log of files", note)
    if last is None:
        return SourceSummary(0, 0, None, None, is_idle=False)
    is_idle = Chunk(**last).is_decision
    return SourceSummary(
        files, size, last["path"] or None, newest_of(last["newest_after"]), is_idle
    )
