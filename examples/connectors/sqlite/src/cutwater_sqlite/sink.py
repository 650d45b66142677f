"""A table whose rows and ledger are written in one transaction.

``cutwater_ledger`` says which checkpoint and generation the table belongs to, ``cutwater_buckets``
how far each bucket is. A task claims its epoch of a bucket and inserts the rows in one transaction
of SQLite, which locks the whole file: rows are there with their entry, or neither is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from cutwater.errors import Problem
from cutwater.spark.connectors import (
    EXACTLY_ONCE,
    BucketRows,
    Claim,
    Guarantee,
    Receipt,
    Release,
    SinkConnector,
    already_claimed,
    fenced,
)

LEDGER = """
CREATE TABLE IF NOT EXISTS cutwater_ledger (
    output TEXT PRIMARY KEY, query_id TEXT NOT NULL, generation INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS cutwater_buckets (
    output TEXT, bucket INTEGER, epoch INTEGER NOT NULL, rows INTEGER NOT NULL,
    PRIMARY KEY (output, bucket)
);
"""


@dataclass(frozen=True)
class SqliteTable(SinkConnector):
    """Rows of a flat record; the table is made with a column for each field."""

    path: str
    table: str
    accepts: Literal["records"] = field(default="records", init=False)
    release: Release = field(default="early", init=False)

    def guarantee(self) -> Guarantee:
        return Guarantee(EXACTLY_ONCE, "commits rows and ledger together")

    @property
    def location(self) -> str:
        return f"table {self.table} in {Path(self.path).absolute()}"

    # --- before anything is written --------------------------------------------------------------

    def prepare(self, name: str, record: Any) -> None:
        columns = ", ".join(_quoted(each.name) for each in fields(record))
        with self._transaction() as connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {_quoted(self.table)} ({columns})")

    def check(self, name: str, query_id: str | None, next_epoch: int) -> list[Problem]:
        owner, newest = self._owner(), self._newest()
        if owner is not None and owner[0] != query_id:
            return [
                Problem(
                    "another-checkpoint",
                    f"sink '{name}': {self.location} belongs to another checkpoint",
                    "name another table; or pass --adopt to keep its rows, --fresh to delete them",
                )
            ]
        if owner is not None and newest >= next_epoch:
            return [
                Problem(
                    "output-ahead",
                    f"sink '{name}': {self.location} has epoch {newest}, and the checkpoint is at "
                    f"epoch {next_epoch}; it is older than its output",
                    "restore the table with the checkpoint, or pass --fresh with a new checkpoint",
                )
            ]
        return []

    def newest_epoch(self, name: str, query_id: str) -> int | None:
        owner = self._owner()
        return self._newest() if owner is not None and owner[0] == query_id else None

    def generation(self, name: str) -> int:
        owner = self._owner()
        return owner[1] if owner else 0

    # --- one writer at a time --------------------------------------------------------------------

    def claim(self, claim: Claim) -> None:
        with self._transaction() as connection:
            found = _owner_in(connection, self.table)
            if found and (found[0] != claim.query_id or found[1] > claim.generation):
                raise already_claimed(self.location, claim, found[1])
            _enter(connection, self.table, claim)

    def take_over(self, claim: Claim, *, keep: bool) -> None:
        with self._transaction() as connection:
            found = _owner_in(connection, self.table)
            if found and found[0] == claim.query_id:
                return
            connection.execute("DELETE FROM cutwater_buckets WHERE output = ?", [self.table])
            if not keep:
                connection.execute(f"DELETE FROM {_quoted(self.table)}")
            _enter(connection, self.table, claim)

    # --- while it runs ---------------------------------------------------------------------------

    def write(
        self, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> Receipt:
        names = [each.name for each in fields(record)]
        marks = ", ".join("?" * len(names))
        with self._transaction() as connection:
            found = _owner_in(connection, self.table)
            if found != (claim.query_id, claim.generation):
                raise fenced(epoch, self.location, claim, found[1] if found else None)
            for bucket in buckets:
                if _is_written(connection, self.table, bucket.label, epoch):
                    continue
                rows = ([getattr(value, name) for name in names] for value in bucket.values)
                connection.executemany(f"INSERT INTO {_quoted(self.table)} VALUES ({marks})", rows)
                _note(connection, self.table, bucket, epoch)
        return Receipt(claim.sink)

    def publish(self, claim: Claim, epoch: int, receipts: Sequence[Receipt]) -> None:
        pass  # `write` has released the rows

    def released(self, claim: Claim, epoch: int) -> str | None:
        sql = "SELECT count(*) FROM cutwater_buckets WHERE output = ? AND epoch >= ?"
        (count,) = self._one(sql, self.table, epoch)
        return f"rows of {count} buckets" if count else None

    def row_count(self, claim: Claim) -> int:
        (rows,) = self._one("SELECT sum(rows) FROM cutwater_buckets WHERE output = ?", self.table)
        return rows or 0

    # --- SQLite ----------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other process writes beside; synced when it is over."""
        with closing(sqlite3.connect(self.path, timeout=60, isolation_level=None)) as connection:
            connection.executescript(LEDGER)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def _one(self, sql: str, *values: Any) -> tuple[Any, ...]:
        with self._transaction() as connection:
            found: tuple[Any, ...] = connection.execute(sql, values).fetchone()
            return found

    def _owner(self) -> tuple[str, int] | None:
        if not Path(self.path).exists():
            return None
        with self._transaction() as connection:
            return _owner_in(connection, self.table)

    def _newest(self) -> int:
        if not Path(self.path).exists():
            return -1
        (newest,) = self._one(
            "SELECT max(epoch) FROM cutwater_buckets WHERE output = ?", self.table
        )
        return -1 if newest is None else newest


def _owner_in(connection: sqlite3.Connection, table: str) -> tuple[str, int] | None:
    sql = "SELECT query_id, generation FROM cutwater_ledger WHERE output = ?"
    found: tuple[str, int] | None = connection.execute(sql, [table]).fetchone()
    return found


def _enter(connection: sqlite3.Connection, table: str, claim: Claim) -> None:
    sql = "INSERT OR REPLACE INTO cutwater_ledger VALUES (?, ?, ?)"
    connection.execute(sql, [table, claim.query_id, claim.generation])


def _is_written(connection: sqlite3.Connection, table: str, bucket: int, epoch: int) -> bool:
    sql = "SELECT 1 FROM cutwater_buckets WHERE output = ? AND bucket = ? AND epoch >= ?"
    return connection.execute(sql, [table, bucket, epoch]).fetchone() is not None


def _note(connection: sqlite3.Connection, table: str, bucket: BucketRows, epoch: int) -> None:
    connection.execute(
        "INSERT INTO cutwater_buckets VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "epoch = excluded.epoch, rows = rows + excluded.rows",
        [table, bucket.label, epoch, len(bucket.orders)],
    )


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
