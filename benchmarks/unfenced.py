"""The PostgreSQL sink without its ledger and its fence: what exactly-once is compared with.

Same connections, same inserts, same transactions. Workers import this module by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutwater.spark.postgres.connections import Connection
from cutwater.spark.postgres.ledger import Entry, Header, Ledger
from cutwater.spark.postgres.sink import PostgresTable
from cutwater.spark.sinks import Claim

__all__ = ["Unfenced"]


class _NoLedger(Ledger):
    def read(self, connection: Connection) -> Header | None:
        return None

    def take(self, connection: Connection, claim: Claim) -> None:
        pass

    def claim(
        self, connection: Connection, claim: Claim, epoch: int, entries: Sequence[Entry]
    ) -> list[int]:
        return [entry.label for entry in entries]

    def rows(self, connection: Connection) -> int:
        return 0


@dataclass(frozen=True, kw_only=True)
class Unfenced(PostgresTable):
    """A table that doubles rows when a task is tried again."""

    @property
    def ledger(self) -> Ledger:
        """None that would keep anything."""
        return _NoLedger(self.name.schema, str(self.name))
