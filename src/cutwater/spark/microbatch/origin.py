"""Where an event came from, looked up by its order, and only once a function has failed on it.

The order of an event begins with that of the input that caused it: the rank of its source, the
number of its file or partition, its position there. Nothing else travels with an event, so a run
that does not fail pays nothing for this.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from cutwater.ordering import AFTER_DATA
from cutwater.spark.checkpoint.offset_log import LOG
from cutwater.spark.connectors.base.source import Chunk, Feed
from cutwater.spark.job.spec import Job
from cutwater.spark.storage.entry_log import EntryLog

__all__ = ["origin_of"]

_SIGN = 1 << 63


def origin_of(job: Job, order: bytes) -> str:
    """File and line, or partition and offset, of the input at an order; empty if nobody knows.

    What the end of an epoch or a watermark causes has no input of its own.
    """
    rank = int.from_bytes(order[:8], "big")
    names = {rank: name for name, rank in job.source_ranks.items()}
    if not order or rank >= AFTER_DATA or rank not in names:
        return ""
    bound = job.sources[names[rank]]
    with suppress(Exception):  # best effort: the failure itself must be told
        if isinstance(bound, Feed):
            return _place(job, names[rank], bound, order[8:])
        return _row(names[rank], bound.whole_order, order[8:])
    return ""


def _place(job: Job, source: str, feed: Feed, order: bytes) -> str:
    number = int.from_bytes(order[:8], "big")
    chunk = _chunk_of(Path(job.checkpoint) / "sources" / source, number)
    return feed.place(chunk, feed.position(chunk, order[8:])) if chunk else ""


def _chunk_of(log: Path, number: int) -> Chunk | None:
    """The newest chunk of a file or a partition."""
    found: list[Chunk] = []

    def note(kept: list[dict[str, Any]]) -> None:
        chunks = map(Chunk.of_json, kept)
        found[:] = [c for c in [*found, *chunks] if c.number == number and not c.is_decision][-1:]

    EntryLog(log, LOG, note)
    return found[0] if found else None


def _row(source: str, columns: tuple[str, ...], order: bytes) -> str:
    """A row of a DataFrame, by the columns that say where it stands, if all are whole numbers."""
    parts = [order[start : start + 8] for start in range(0, 8 * len(columns), 8)]
    numbers = [int.from_bytes(part, "big") - _SIGN for part in parts]
    said = ", ".join(f"{name} {number}" for name, number in zip(columns, numbers, strict=True))
    return f"the row of source '{source}' with {said}" if said else ""
