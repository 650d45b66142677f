"""A PostgreSQL sink that is another one in each stretch of epochs, so that one run has all of them.

Same connections, same inserts, same transactions. Workers import this module by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from cutwater.spark.connectors.base.sink import BucketRows, Claim
from cutwater.spark.connectors.postgres.connections import Connection
from cutwater.spark.connectors.postgres.ledger import LedgerEntry, PostgresLedger
from cutwater.spark.connectors.postgres.sink import PostgresTable, Written

__all__ = ["COMMIT", "EARLY", "STRETCH", "UNFENCED", "InTurns", "Unfenced"]

UNFENCED = "early, without ledger and fence"
EARLY = "early"
COMMIT = "commit"
STRETCH = 20
"""Epochs in which the sink stays what it is."""


class _NoLedger(PostgresLedger):
    def claim_epoch(
        self, connection: Connection, claim: Claim, epoch: int, entries: Sequence[LedgerEntry]
    ) -> list[int]:
        return [entry.label for entry in entries]


@dataclass(frozen=True, kw_only=True)
class Unfenced(PostgresTable):
    """A table that doubles rows when a task is tried again."""

    @property
    def ledger(self) -> PostgresLedger:
        return _NoLedger(self.name.schema, str(self.name))


@dataclass(frozen=True, kw_only=True)
class InTurns(PostgresTable):
    """A table whose rows leave in one way after the other; after the last one it stays so."""

    turns: tuple[str, ...]

    def turn(self, epoch: int) -> int:
        """Which turn it is in an epoch."""
        return min(epoch // STRETCH, len(self.turns) - 1)

    def write(
        self, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> Written:
        """Write rows, or stage them."""
        side = self.turns[self.turn(epoch)]
        if side == UNFENCED:
            same = {f.name: getattr(self, f.name) for f in fields(PostgresTable) if f.init}
            return Unfenced(**same).write(claim, epoch, record, buckets)
        if side == COMMIT:
            staging = replace(self, release="commit")
            return PostgresTable.write(staging, claim, epoch, record, buckets)
        return super().write(claim, epoch, record, buckets)
