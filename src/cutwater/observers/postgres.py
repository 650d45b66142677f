"""The observer of a PostgreSQL table."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import SQL, Composable, Composed, Identifier

__all__ = ["PostgresObserver"]


class PostgresObserver:
    """Reads a table in transactions of its own.

    Parameters
    ----------
    dsn
        The connection string, as libpq takes it.
    table
        ``total`` or ``sales.total``; a name without a schema is in ``public``.
    order_by
        The column to sort by. Without it rows come in physical order, which is the order of
        insertion as long as none is deleted, updated or rolled back.
    ledger_schema
        The schema of the ledger; default: that of the table.
    """

    def __init__(
        self, dsn: str, table: str, order_by: str | None = None, ledger_schema: str | None = None
    ) -> None:
        schema, _, name = table.rpartition(".")
        self._dsn = dsn
        self._schema = schema or "public"
        self._name = name
        self._order: Composable = Identifier(order_by) if order_by else SQL("ctid")
        self._ledger_schema = ledger_schema or self._schema

    def rows(self) -> list[dict[str, Any]]:
        """All committed rows."""
        query = SQL("SELECT * FROM {} ORDER BY {}")
        return self._read(query.format(Identifier(self._schema, self._name), self._order))

    def count(self) -> int:
        """The number of committed rows."""
        query = SQL("SELECT count(*) AS n FROM {}")
        return int(self._read(query.format(Identifier(self._schema, self._name)))[0]["n"])

    def epochs(self) -> dict[int, int]:
        """The newest epoch of each bucket that has rows, by the ledger."""
        query = SQL("SELECT bucket, epoch FROM {} WHERE target = {} ORDER BY bucket").format(
            Identifier(self._ledger_schema, "cutwater_buckets"), f"{self._schema}.{self._name}"
        )
        return {row["bucket"]: row["epoch"] for row in self._read(query)}

    def _read(self, query: Composed) -> list[dict[str, Any]]:
        with psycopg.connect(self._dsn, row_factory=dict_row) as connection:
            return connection.execute(query).fetchall()
