"""The real-time engine without what makes it exactly-once; a worker that imports this has none.

The plan does not wait for the disk, no ledger is asked, and the interval of snapshots is longer
than the run. There is no such option: it exists to measure what the guarantee costs. Workers import
this module by its name.
"""

from __future__ import annotations

from typing import BinaryIO

from unfenced import Unfenced

from cutwater.spark.realtime import plan_log

__all__ = ["UnguardedTable"]


class UnguardedTable(Unfenced):
    """A table that has duplicates after a crash."""


def _flush(file: BinaryIO) -> None:
    """In place of a sync: the plan reaches the operating system, not the disk."""
    file.flush()


plan_log.sync_file = _flush  # type: ignore[attr-defined]
