"""The ledger of a table: its owner, and the progress of each bucket, in two tables beside it.

``cutwater_ledger`` has a row for each table that a flow writes to, with the checkpoint and the
newest generation that claimed it. ``cutwater_buckets`` has a row for each bucket, with its newest
committed epoch. An epoch of a bucket is claimed in the transaction that writes its rows: it can be
claimed only once, by any number of attempts, and a fenced generation cannot claim at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.sql import SQL, Composed, Identifier

from cutwater.errors import FencedError
from cutwater.spark.connectors.base.sink import Claim, fenced
from cutwater.spark.connectors.postgres.connections import Connection
from cutwater.spark.connectors.postgres.settings import TableName
from cutwater.spark.connectors.postgres.tables import beside_parameters, quoted

__all__ = ["POSTGRES_LEDGER_FORMAT", "LedgerEntry", "LedgerHeader", "PostgresLedger"]

POSTGRES_LEDGER_FORMAT = 1
_LOCK = 0x6375747761746572
"""Advisory lock for creating the tables: two transactions cannot do that concurrently."""

_TABLES = """
CREATE TABLE {ledger} (
    target text PRIMARY KEY, format int NOT NULL, flow text NOT NULL, sink text NOT NULL,
    query_id text NOT NULL, generation bigint NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE {buckets} (
    target text NOT NULL REFERENCES {ledger} ON DELETE CASCADE, bucket bigint NOT NULL,
    epoch bigint NOT NULL, last_order bytea NOT NULL, rows bigint NOT NULL,
    PRIMARY KEY (target, bucket)
) WITH (fillfactor = 50);
"""

_TAKE = """
INSERT INTO {ledger} AS held (target, format, flow, sink, query_id, generation)
VALUES (%(target)s, %(format)s, %(flow)s, %(sink)s, %(query_id)s, %(generation)s)
ON CONFLICT (target) DO UPDATE
SET generation = excluded.generation, flow = excluded.flow, taken_at = clock_timestamp()
WHERE (held.query_id, held.sink) = (excluded.query_id, excluded.sink)
    AND held.generation <= excluded.generation
RETURNING generation
"""

_TAKE_OVER = """
UPDATE {ledger} SET flow = %(flow)s, sink = %(sink)s, query_id = %(query_id)s,
    generation = %(generation)s, taken_at = clock_timestamp()
WHERE target = %(target)s AND query_id <> %(query_id)s
"""

_CLAIM = """
WITH held AS (
    SELECT query_id, generation FROM {ledger} WHERE target = %(target)s FOR SHARE
), claimed AS (
    INSERT INTO {buckets} AS known (target, bucket, epoch, last_order, rows)
    SELECT %(target)s::text, entry.bucket, %(epoch)s::bigint, entry.last_order, entry.rows
    FROM unnest(%(labels)s::bigint[], %(orders)s::bytea[], %(rows)s::bigint[])
        AS entry (bucket, last_order, rows)
    WHERE (%(query_id)s::text, %(generation)s::bigint) = (SELECT query_id, generation FROM held)
    ORDER BY entry.bucket
    ON CONFLICT (target, bucket) DO UPDATE
    SET epoch = excluded.epoch, last_order = excluded.last_order, rows = known.rows + excluded.rows
    WHERE known.epoch < excluded.epoch
    RETURNING bucket
)
SELECT (SELECT query_id FROM held), (SELECT generation FROM held), ARRAY(SELECT bucket FROM claimed)
"""


@dataclass(frozen=True)
class LedgerHeader:
    """The owner of a table, and how far it is."""

    format: int
    flow: str
    sink: str
    query_id: str
    generation: int
    newest_epoch: int
    """The newest epoch of any bucket; -1 if nothing was written."""


@dataclass(frozen=True)
class LedgerEntry:
    """The rows of a bucket in an epoch, and the order of the last one."""

    label: int
    rows: int
    last_order: bytes


class PostgresLedger:
    """The ledger of a table, in a schema."""

    def __init__(self, schema: str, target: str) -> None:
        self._schema = schema
        self._target = target
        self._tables = {
            "ledger": Identifier(schema, "cutwater_ledger"),
            "buckets": Identifier(schema, "cutwater_buckets"),
        }

    def _sql(self, text: str) -> Composed:
        """A statement with parameters, with the names of the tables filled in."""
        named = {name: beside_parameters(table) for name, table in self._tables.items()}
        return SQL(text).format(**named)

    def _is_there(self, connection: Connection) -> bool:
        query = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'cutwater_buckets'"
        return connection.execute(query, (self._schema,)).fetchone() is not None

    def read(self, connection: Connection) -> LedgerHeader | None:
        """The owner of the table; None if it was never claimed."""
        if not self._is_there(connection):
            return None
        query = """
            SELECT format, flow, sink, query_id, generation,
                (SELECT coalesce(max(epoch), -1) FROM {buckets} WHERE target = %(target)s)
            FROM {ledger} WHERE target = %(target)s
        """
        found = connection.execute(self._sql(query), {"target": self._target}).fetchone()
        return LedgerHeader(*found) if found else None

    def claim(self, connection: Connection, claim: Claim) -> None:
        """Write a generation; waits for open transactions of earlier ones, which are then fenced.

        Raises `FencedError` if a newer generation or another checkpoint has claimed the table.
        """
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            if not self._is_there(connection):
                connection.execute(SQL(_TABLES).format(**self._tables))
            found = connection.execute(self._sql(_TAKE), self._values(claim)).fetchone()
            if found is None:
                raise _taken(self._target, claim, self.read(connection))

    def take_over(self, connection: Connection, claim: Claim, emptied: TableName | None) -> None:
        """Make a checkpoint the owner, and delete the rows of `emptied`, in one transaction.

        Waits for open transactions of the previous owner, which is then fenced. Does nothing if the
        table belongs to this checkpoint already.
        """
        with connection.transaction():
            if not connection.execute(self._sql(_TAKE_OVER), self._values(claim)).rowcount:
                return
            forget = self._sql("DELETE FROM {buckets} WHERE target = %s")
            connection.execute(forget, (self._target,))
            if emptied:
                connection.execute(SQL("DELETE FROM {}").format(quoted(emptied)))

    def _values(self, claim: Claim) -> dict[str, Any]:
        return {"target": self._target, **claim.as_ledger(POSTGRES_LEDGER_FORMAT)}

    def claim_epoch(
        self, connection: Connection, claim: Claim, epoch: int, entries: Sequence[LedgerEntry]
    ) -> list[int]:
        """Claim an epoch of buckets within a transaction; returns the buckets that are new to it.

        Raises `FencedError` if another generation or checkpoint owns the table.
        """
        values = {
            "target": self._target,
            "query_id": claim.query_id,
            "generation": claim.generation,
            "epoch": epoch,
            "labels": [entry.label for entry in entries],
            "orders": [entry.last_order for entry in entries],
            "rows": [entry.rows for entry in entries],
        }
        found = connection.execute(self._sql(_CLAIM), values).fetchone()
        assert found is not None, "a query without FROM has one row"
        query_id, generation, buckets = found
        if (query_id, generation) != (claim.query_id, claim.generation):
            raise fenced(epoch, f"table {self._target}", claim, generation)
        return list(buckets)

    def buckets_at(self, connection: Connection, query_id: str, epoch: int) -> int:
        """The number of buckets of a checkpoint whose rows of an epoch are written."""
        if not self._is_there(connection):
            return 0
        query = """
            SELECT count(*) FROM {buckets} WHERE target = %(target)s AND epoch >= %(epoch)s
            AND %(query_id)s = (SELECT query_id FROM {ledger} WHERE target = %(target)s)
        """
        values = {"target": self._target, "epoch": epoch, "query_id": query_id}
        found = connection.execute(self._sql(query), values).fetchone()
        return int(found[0]) if found else 0

    def rows(self, connection: Connection) -> int:
        """The number of rows written in all epochs."""
        query = "SELECT coalesce(sum(rows), 0)::bigint FROM {buckets} WHERE target = %s"
        found = connection.execute(self._sql(query), (self._target,)).fetchone()
        return int(found[0]) if found else 0


def _taken(target: str, claim: Claim, held: LedgerHeader | None) -> FencedError:
    by = "another one" if held is None else f"generation {held.generation} of flow '{held.flow}'"
    return FencedError.because(
        f"sink '{claim.sink}' cannot claim table {target} as generation {claim.generation}: {by} "
        "has claimed it meanwhile",
        "another run is active; stop one of the two",
    )
