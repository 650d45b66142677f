"""Summarises a checkpoint for people: its flow, its progress, and the layout of its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cutwater.errors import RefusedError
from cutwater.spark.checkpoint.loop_progress import LoopProgress, loop_progress
from cutwater.spark.checkpoint.store import Checkpoint, no_checkpoint
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.base.watermarks import newest_of
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.registry import source_class

__all__ = ["CheckpointSummary", "SourceSummary", "TickSummary", "summary_of"]


@dataclass(frozen=True)
class SourceSummary:
    """How far a source has been read."""

    kind: str
    read: dict[str, int]
    """How much was read, or planned for the next epoch: files and bytes, for example."""
    newest_piece: str | None
    """The file that was read last, for example; None if nothing was read."""
    newest_time: Any
    """The newest time as JSON, or the number of records; None if no step needs times."""
    is_idle: bool
    """Does it follow the other sources, because it had no input for its idle timeout?"""


@dataclass(frozen=True)
class TickSummary:
    """The progress of the snapshots of a real-time run, whose epochs are ticks."""

    snapshot: int | None
    """The tick of the newest snapshot that every task has stored; None: there is none yet."""
    snapshot_time: float | None
    """When that tick was, in Unix seconds."""
    to_replay: int
    """Ticks with records after that snapshot, which the next start replays."""
    state_bytes: int
    """The size of the snapshot files."""


@dataclass(frozen=True)
class CheckpointSummary:
    """What a checkpoint holds."""

    flow: str
    generation: int
    """How many runs it has had."""
    next_epoch: int
    """The first epoch that it does not have."""
    is_mid_epoch: bool
    """Was the newest epoch begun but not finished? Normal while a run is active."""
    buckets: int
    partitions: int
    rescaling_to: int | None
    """The target number of partitions of an interrupted rescaling; None if there is none."""
    steps: list[str]
    """The stateful steps."""
    sources: dict[str, SourceSummary]
    is_closed: bool
    """Has the input ended? Then no run can follow."""
    loop: LoopProgress | None = None
    """The progress of the loop that feeds back through a log; None if there is none."""
    ticks: TickSummary | None = None
    """Only for the real-time engine; None: the epochs are micro-batches."""


def summary_of(checkpoint: Checkpoint) -> CheckpointSummary:
    """Summarise a checkpoint; read-only, and needs no session."""
    identity = checkpoint.identity()
    if identity is None:
        raise RefusedError(no_checkpoint(checkpoint))
    return CheckpointSummary(
        flow=identity.flow,
        generation=identity.generation,
        next_epoch=checkpoint.next_epoch(),
        is_mid_epoch=checkpoint.is_mid_epoch(),
        buckets=identity.buckets,
        partitions=identity.partitions,
        rescaling_to=checkpoint.rescaling_to(),
        steps=sorted(identity.steps),
        sources={
            name: _source(checkpoint, name, source.kind or JsonLines.kind)
            for name, source in identity.sources.items()
        },
        is_closed=identity.is_closed,
        loop=loop_progress(checkpoint, identity),
    )


def _source(checkpoint: Checkpoint, name: str, kind: str) -> SourceSummary:
    connector = source_class(kind)
    if connector is None:  # Spark reads it itself
        return SourceSummary(kind, {}, None, None, is_idle=False)
    pieces: set[int] = set()
    amount, last = 0, None

    def note(chunk: Chunk) -> None:
        nonlocal amount, last
        last = chunk
        if not chunk.is_decision:
            pieces.add(chunk.number)
            amount += connector.measure(chunk)

    checkpoint.read_chunks(name, note)
    return SourceSummary(
        kind,
        {connector.partitions_noun: len(pieces), connector.unit: amount},
        (connector.partition_name(last) or None) if last else None,
        newest_of(last.newest_after) if last else None,
        is_idle=last.is_decision if last else False,
    )
