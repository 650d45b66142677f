"""A PostgreSQL sink without ledger and fence, to measure what they cost.

Workers import this module by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutwater.spark.connectors.base.sink import Claim
from cutwater.spark.connectors.postgres.connections import Connection
from cutwater.spark.connectors.postgres.ledger import LedgerEntry, PostgresLedger
from cutwater.spark.connectors.postgres.sink import PostgresTable

__all__ = ["Unfenced"]


class _NoLedger(PostgresLedger):
    def claim_epoch(
        self, connection: Connection, claim: Claim, epoch: int, entries: Sequence[LedgerEntry]
    ) -> list[int]:
        return [entry.label for entry in entries]


@dataclass(frozen=True, kw_only=True)
class Unfenced(PostgresTable):
    """A table that has duplicates when a task is retried."""

    @property
    def ledger(self) -> PostgresLedger:
        return _NoLedger(self.name.schema, str(self.name))
