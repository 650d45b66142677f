"""What a checkpoint holds, for people: whose it is, how far it is, how its state lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutwater.errors import RefusedError
from cutwater.spark.checkpoint.loop_progress import LoopProgress, loop_progress
from cutwater.spark.checkpoint.offset_log import LOG
from cutwater.spark.checkpoint.store import Checkpoint, no_checkpoint, refuse_real_time
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.base.watermarks import newest_of
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.registry import source_class
from cutwater.spark.storage.entry_log import EntryLog

__all__ = ["CheckpointSummary", "SourceSummary", "describe"]


@dataclass(frozen=True)
class SourceSummary:
    """How far a source is."""

    kind: str
    read: dict[str, int]
    """How much was read, or planned for the epoch that is next: files and bytes, for example."""
    newest_piece: str | None
    """The file that was read last, for example; None if there is none."""
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
    loop: LoopProgress | None = None
    """Where the loop is that feeds back through a log; None if none does."""


def describe(checkpoint: str | Path) -> CheckpointSummary:
    """What a checkpoint holds; nothing is written, and no session is needed."""
    place = Checkpoint.at(checkpoint)
    identity = place.identity()
    if identity is None:
        raise RefusedError(no_checkpoint(place))
    refuse_real_time(identity, "describe epochs")
    return CheckpointSummary(
        flow=identity.flow,
        generation=identity.generation,
        next_epoch=place.next_epoch(),
        is_mid_epoch=place.is_mid_epoch(),
        buckets=identity.buckets,
        partitions=identity.partitions,
        rescaling_to=place.rescaling_to(),
        steps=sorted(identity.steps),
        sources={
            name: _source(place.root / "sources" / name, source.kind or JsonLines.kind)
            for name, source in identity.sources.items()
        },
        is_closed=identity.is_closed,
        loop=loop_progress(place, identity),
    )


def _source(log: Path, kind: str) -> SourceSummary:
    feed = source_class(kind)
    if feed is None:  # Spark itself reads it
        return SourceSummary(kind, {}, None, None, is_idle=False)
    pieces: set[int] = set()
    amount, last = 0, None

    def note(chunks: list[dict[str, Any]]) -> None:
        nonlocal amount, last
        for last in map(Chunk.of_json, chunks):
            if not last.is_decision:
                pieces.add(last.number)
                amount += feed.tally(last)

    EntryLog(log, LOG, note)
    return SourceSummary(
        kind,
        {feed.pieces: len(pieces), feed.unit: amount},
        (feed.piece(last) or None) if last else None,
        newest_of(last.newest_after) if last else None,
        is_idle=last.is_decision if last else False,
    )
