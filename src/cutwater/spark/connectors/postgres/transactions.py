"""Writes rows and ledger in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from psycopg import sql

from cutwater.errors import Problem, RefusedError
from cutwater.spark.connectors.base.sink import Claim
from cutwater.spark.connectors.postgres.connections import Connection, persist
from cutwater.spark.connectors.postgres.fields import Field
from cutwater.spark.connectors.postgres.ledger import LedgerEntry, PostgresLedger
from cutwater.spark.connectors.postgres.packed_rows import RowBatch
from cutwater.spark.connectors.postgres.settings import Database, TableName
from cutwater.spark.connectors.postgres.tables import (
    Table,
    beside_parameters,
    names,
    quoted,
    read_table,
)

__all__ = ["create_table", "known_table", "table_definition", "write_rows"]


@lru_cache(maxsize=64)
def known_table(database: Database, name: TableName, claim: Claim) -> Table:
    """A table and its columns, cached per process and run; raises `RefusedError` if it is gone."""
    owner, doing = f"sink '{claim.sink}'", f"read the columns of {name}"
    found = persist(database, owner, doing, lambda connection: read_table(connection, name))
    if found is None:
        raise RefusedError(
            Problem(
                "missing-table",
                f"{owner} goes to {name}, and that table does not exist any more",
                "restore it with its rows: the ledger counts them as written",
            )
        )
    return found


def write_rows(
    connection: Connection,
    table: Table,
    keys: Sequence[str],
    ledger: PostgresLedger,
    claim: Claim,
    epoch: int,
    entries: Sequence[LedgerEntry],
    batches: Iterable[RowBatch],
) -> None:
    """Claim an epoch of buckets and write their rows, atomically.

    Buckets whose epoch is written already are skipped; if all are, `batches` is not read. With
    keys, the last row of each key replaces the existing one.
    """
    with connection.transaction():
        buckets = ledger.claim_epoch(connection, claim, epoch, entries)
        for batch in batches if buckets else ():
            types = tuple(table.columns[name].type for name in batch.columns)
            statement = _insert(table.name, batch.columns, types, tuple(keys))
            connection.execute(statement, [*batch.arrays, _array(batch.labels), _array(buckets)])


def _array(numbers: Sequence[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


@lru_cache(maxsize=256)
def _insert(
    table: TableName, columns: tuple[str, ...], types: tuple[str, ...], keys: tuple[str, ...]
) -> str:
    """An INSERT from arrays: one per column, one of the rows' buckets, one of buckets to write."""
    identifiers = {name: sql.Identifier(f"c{i}") for i, name in enumerate(columns)}
    arrays = [sql.SQL("%s::") + beside_parameters(sql.SQL(tp + "[]")) for tp in types]
    parts = {
        "table": beside_parameters(quoted(table)),
        "columns": beside_parameters(names(columns)),
        "picked": sql.SQL(", ").join(identifiers.values()),
        "arrays": sql.SQL(", ").join([*arrays, sql.SQL("%s::bigint[]")]),
        "given": sql.SQL(", ").join([*identifiers.values(), sql.SQL("bucket"), sql.SQL("n")]),
        "keys": sql.SQL(", ").join([identifiers[key] for key in keys]),
        "unique": beside_parameters(names(keys)),
        "action": beside_parameters(_replacing([name for name in columns if name not in keys])),
    }
    rows = (
        "FROM unnest({arrays}) WITH ORDINALITY AS given ({given}) WHERE bucket = ANY(%s::bigint[])"
    )
    append = "INSERT INTO {table} ({columns}) SELECT {picked} " + rows + " ORDER BY n"
    upsert = (
        "INSERT INTO {table} ({columns}) SELECT DISTINCT ON ({keys}) {picked} "
        + rows
        + " ORDER BY {keys}, n DESC ON CONFLICT ({unique}) {action}"
    )
    return sql.SQL(upsert if keys else append).format(**parts).as_string()


def _replacing(columns: Sequence[str]) -> sql.Composable:
    if not columns:
        return sql.SQL("DO NOTHING")
    sets = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in columns]
    return sql.SQL("DO UPDATE SET {}").format(sql.SQL(", ").join(sets))


def create_table(
    connection: Connection, name: TableName, fields: Sequence[Field], keys: Sequence[str]
) -> None:
    """Create a table with a column for each field, unless one of that name exists."""
    with connection.transaction():
        if read_table(connection, name) is None:
            connection.execute(table_definition(name, fields, keys))


def table_definition(name: TableName, fields: Sequence[Field], keys: Sequence[str]) -> str:
    """The CREATE TABLE statement of a table with a column for each field."""
    lines: list[sql.Composable] = [
        sql.SQL("{} " + field.sql_type + ("" if field.is_optional else " NOT NULL")).format(
            sql.Identifier(field.column)
        )
        for field in fields
    ]
    if keys:
        lines.append(sql.SQL("PRIMARY KEY ({})").format(names(keys)))
    made = sql.SQL("CREATE TABLE {} ({})").format(quoted(name), sql.SQL(", ").join(lines))
    return made.as_string()
