"""The functions with which users bind a sink or a source to PostgreSQL."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from cutwater.errors import Problem, RefusedError
from cutwater.spark.connectors.base.long_records import MAX_RECORD_BYTES
from cutwater.spark.connectors.postgres.source import PostgresRows

if TYPE_CHECKING:
    from cutwater.spark.connectors.postgres.sink import PostgresTable

__all__ = ["postgres_rows", "postgres_table"]


def postgres_table(
    *,
    table: str,
    dsn: str,
    mode: Literal["append", "upsert"] = "append",
    keys: Sequence[str] = (),
    release: Literal["early", "commit"] = "commit",
    password_env: str | None = None,
    password_file: str | None = None,
    ledger_schema: str | None = None,
    create: bool = False,
) -> PostgresTable:
    """A PostgreSQL table as a sink: rows and ledger commit together.

    Parameters
    ----------
    table
        Its name, ``total`` or ``sales.total``; a name without a schema is in ``public``.
    dsn
        The connection string for libpq, without a password.
    mode
        ``append`` adds rows; ``upsert`` replaces the row that has the same `keys`.
    keys
        The columns by which rows are replaced; a constraint must make them unique.
    release
        ``early``: tasks commit rows before the epoch is finished; ``commit``: the driver commits
        the whole epoch at once when it is.
    password_env, password_file
        The environment variable or the file that holds the password. Without either, libpq looks
        in its usual places.
    ledger_schema
        The schema of the ledger; None: that of the table.
    create
        Create the table if it is missing, with a column for each field.
    """
    _need_psycopg(f"table {table}")
    from cutwater.spark.connectors.postgres.sink import PostgresTable

    return PostgresTable(
        table=table,
        dsn=dsn,
        mode=mode,
        keys=tuple(keys),
        release=release,
        password_env=password_env,
        password_file=password_file,
        ledger_schema=ledger_schema,
        create=create,
    )


def postgres_rows(
    *,
    table: str,
    dsn: str,
    key: str,
    transaction: str | None = None,
    max_rows_per_epoch: int = 100_000,
    max_bytes_per_epoch: int = 32 << 20,
    max_record_bytes: int = MAX_RECORD_BYTES,
    idle_after: float | None = None,
    password_env: str | None = None,
    password_file: str | None = None,
) -> PostgresRows:
    """The rows of a table as a source: reads each row that is added, once.

    Parameters
    ----------
    table
        Its name, ``orders`` or ``sales.orders``; a name without a schema is in ``public``.
    dsn
        The connection string for libpq, without a password.
    key
        The column that identifies rows: integers or UUIDs, unique.
    transaction
        The column that says which transaction added a row: ``xid8 NOT NULL DEFAULT
        pg_current_xact_id()``. Without it rows are read by the key alone, and a row that commits
        after one with a larger key is missed.
    max_rows_per_epoch
        The most rows that one epoch reads; a bucket's share of it is sorted in memory.
    max_bytes_per_epoch
        The same in bytes, and one row that exceeds it: of text and ``bytea`` the length, of other
        values what they take in the table, where long ones are compressed.
    max_record_bytes
        A row whose values are larger together is a bad record.
    idle_after
        Seconds without input after which the source no longer holds back the watermark of others.
    password_env, password_file
        The environment variable or the file that holds the password. Without either, libpq looks
        in its usual places.
    """
    _need_psycopg(f"table {table}")
    return PostgresRows(
        table=table,
        dsn=dsn,
        key=key,
        transaction=transaction,
        max_rows_per_epoch=max_rows_per_epoch,
        max_bytes_per_epoch=max_bytes_per_epoch,
        max_record_bytes=max_record_bytes,
        idle_after=idle_after,
        password_env=password_env,
        password_file=password_file,
    )


def _need_psycopg(what: str) -> None:
    if importlib.util.find_spec("psycopg") is None:
        raise RefusedError(
            Problem(
                "missing-package",
                f"{what} is in PostgreSQL, and the package psycopg is not installed",
                "pip install 'cutwater[postgres]'",
            )
        )
