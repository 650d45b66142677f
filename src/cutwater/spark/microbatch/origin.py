"""Finds the input of an event in the logs of sources, once a function has failed on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cutwater.spark.checkpoint.offset_log import LOG
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.job.spec import Job
from cutwater.spark.operators.origin import input_at
from cutwater.spark.storage.entry_log import EntryLog

__all__ = ["origin_of"]


def origin_of(job: Job, order: bytes) -> str:
    """File and line, or partition and offset, of the input at an order; empty if unknown."""
    logs = Path(job.checkpoint) / "sources"
    return input_at(job, order, lambda source, number: _chunk_of(logs / source, number))


def _chunk_of(log: Path, number: int) -> Chunk | None:
    """The newest chunk of a file or a partition."""
    found: list[Chunk] = []

    def note(kept: list[dict[str, Any]]) -> None:
        chunks = map(Chunk.of_json, kept)
        found[:] = [c for c in [*found, *chunks] if c.number == number and not c.is_decision][-1:]

    EntryLog(log, LOG, note)
    return found[0] if found else None
