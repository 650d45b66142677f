"""What the sources of a flow are bound to when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

__all__ = ["Frame", "JsonLines"]


@dataclass(frozen=True)
class JsonLines:
    """A folder of JSON-lines files: each file appears whole, and does not change after."""

    path: str
    max_bytes_per_epoch: int = 32 << 20
    """How much one epoch reads at the most; a bucket's share of it is sorted in memory."""
    idle_after: float | None = None
    """Seconds without new input after which the source holds others back no longer."""


@dataclass(frozen=True)
class Frame:
    """A streaming DataFrame as a source.

    Parameters
    ----------
    data
        Its columns are the fields of the source's records, by name; others are left alone.
    order
        Columns that say where a row stands among all rows of the source, the same after a replay
        and never twice: partition and offset of Kafka, or a file's name and the row in it.
        Without them rows are taken as they come, and a replay may take them in another order.
    """

    data: DataFrame
    order: Sequence[str] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {"data": None, "order": tuple(self.order)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
