"""The real-time engine without what makes it exactly-once; a worker that imports this has none.

The plan does not wait for the disk, no ledger is asked, and the interval of snapshots is longer
than the run. There is no such option: it exists to measure what the guarantee costs. Workers import
this module by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from cutwater.spark.connectors.base.sink import Claim
from cutwater.spark.connectors.postgres.connections import Connection
from cutwater.spark.connectors.postgres.ledger import LedgerEntry, PostgresLedger
from cutwater.spark.connectors.postgres.sink import PostgresTable
from cutwater.spark.realtime import plan_log

__all__ = ["UnguardedTable"]


class _NoLedger(PostgresLedger):
    def claim_epoch(
        self, connection: Connection, claim: Claim, epoch: int, entries: Sequence[LedgerEntry]
    ) -> list[int]:
        return [entry.label for entry in entries]


@dataclass(frozen=True, kw_only=True)
class UnguardedTable(PostgresTable):
    """A table that doubles rows after a crash."""

    @property
    def ledger(self) -> PostgresLedger:
        return _NoLedger(self.name.schema, str(self.name))


def _flush(file: BinaryIO) -> None:
    """In place of a sync: the plan reaches the operating system, not the disk."""
    file.flush()


plan_log.sync_file = _flush  # type: ignore[attr-defined]
