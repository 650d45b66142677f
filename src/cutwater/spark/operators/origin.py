"""Finds the input that an event came from, by its order; only once a function has failed on it.

The order of an event begins with that of its input: the rank of the source, the number of the file
or partition, the position there. Nothing else travels with an event, so a run that does not fail
pays nothing for this.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from cutwater.ordering import AFTER_DATA
from cutwater.spark.connectors.base.source import Chunk, SourceConnector
from cutwater.spark.job.spec import Job

__all__ = ["ChunkOf", "input_at"]

ChunkOf = Callable[[str, int], Chunk | None]
"""The newest chunk of a source with a number, from the log of an engine; None if unknown."""

_SIGN = 1 << 63


def input_at(job: Job, order: bytes, chunk_of: ChunkOf) -> str:
    """File and line, or partition and offset, of the input at an order; empty if unknown.

    What the end of an epoch or a watermark causes has no input of its own.
    """
    rank = int.from_bytes(order[:8], "big")
    names = {rank: name for name, rank in job.addresses.source_ranks.items()}
    if not order or rank >= AFTER_DATA or rank not in names:
        return ""
    bound = job.sources[names[rank]]
    with suppress(Exception):  # best effort: the failure itself must be reported
        if isinstance(bound, SourceConnector):
            return _location(bound, order[8:], names[rank], chunk_of)
        return _row(names[rank], bound.whole_order, order[8:])
    return ""


def _location(connector: SourceConnector, order: bytes, source: str, chunk_of: ChunkOf) -> str:
    chunk = chunk_of(source, int.from_bytes(order[:8], "big"))
    return connector.location(chunk, connector.position_of(chunk, order[8:])) if chunk else ""


def _row(source: str, columns: tuple[str, ...], order: bytes) -> str:
    """A row of a DataFrame, identified by its order columns, if all of them are whole numbers."""
    parts = [order[start : start + 8] for start in range(0, 8 * len(columns), 8)]
    numbers = [int.from_bytes(part, "big") - _SIGN for part in parts]
    message = ", ".join(f"{name} {number}" for name, number in zip(columns, numbers, strict=True))
    return f"the row of source '{source}' with {message}" if message else ""
