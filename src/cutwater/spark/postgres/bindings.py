"""What a user binds a sink or a source to."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from cutwater.errors import Problem, RunError

if TYPE_CHECKING:
    from cutwater.spark.postgres.sink import PostgresTable

__all__ = ["postgres_table"]


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
    """A table of PostgreSQL as a sink: rows and ledger commit together.

    Parameters
    ----------
    table
        Its name, ``total`` or ``sales.total``; a name without a schema is in ``public``.
    dsn
        Where the database is, as libpq takes it, without a password.
    mode
        ``append`` adds rows; ``upsert`` replaces the row that has the same `keys`.
    keys
        The columns by which rows are replaced; a constraint makes them unique.
    release
        ``early``: tasks write rows, before the epoch is finished; ``commit``: the driver writes
        the whole epoch at once, when it is.
    password_env, password_file
        The variable or the file that holds the password. Without either libpq looks where it does.
    ledger_schema
        The schema of the ledger; that of the table if not told.
    create
        Make the table if it is missing, with a column for each field.
    """
    _need_psycopg(f"table {table}")
    from cutwater.spark.postgres.sink import PostgresTable

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


def _need_psycopg(what: str) -> None:
    if importlib.util.find_spec("psycopg") is None:
        raise RunError(
            Problem(
                "missing-package",
                f"{what} is in PostgreSQL, and the package psycopg is not installed",
                "pip install 'cutwater[postgres]'",
            )
        )
