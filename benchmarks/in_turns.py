"""A PostgreSQL sink that releases rows in another way in each stretch of epochs of one run.

Same connections, same inserts, same transactions. Workers import this module by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from unfenced import Unfenced

from cutwater.spark.connectors.base.sink import BucketRows, Claim
from cutwater.spark.connectors.postgres.sink import PostgresTable, Written

__all__ = ["COMMIT", "EARLY", "STRETCH", "UNFENCED", "InTurns"]

UNFENCED = "early, without ledger and fence"
EARLY = "early"
COMMIT = "commit"
STRETCH = 20
"""Epochs before the sink releases rows in the next way."""


@dataclass(frozen=True, kw_only=True)
class InTurns(PostgresTable):
    """A table that releases rows in each way for a stretch of epochs; then it keeps the last."""

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
