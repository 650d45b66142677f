"""Reads a table from the catalog: its columns and unique constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg.sql import SQL, Composable, Composed, Identifier

from cutwater.spark.connectors.postgres.connections import Connection
from cutwater.spark.connectors.postgres.settings import TableName

__all__ = ["Table", "TableColumn", "beside_parameters", "names", "quoted", "read_table"]


@dataclass(frozen=True)
class TableColumn:
    """A column of a table."""

    name: str
    type: str
    """Its type in SQL, without length or precision."""
    base: str
    """The catalog's name of its type, that of the base type for a domain: ``int8``, ``varchar``."""
    is_enum: bool
    is_required: bool
    """Must a row give it a value that is not NULL?"""
    has_default: bool
    is_generated: bool
    """Is it GENERATED ALWAYS, so that no row may set it?"""


@dataclass(frozen=True)
class Table:
    """A table that exists."""

    name: TableName
    kind: str
    """``r``: a table, ``p``: a partitioned table; views, foreign tables and others differ."""
    persistence: str
    """``p``: permanent; ``u``: unlogged, emptied by a crash; ``t``: temporary."""
    columns: dict[str, TableColumn]
    unique: frozenset[frozenset[str]]
    """The sets of columns that are unique together."""


_TABLE = """
SELECT c.oid, c.relkind::text, c.relpersistence::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, -1), b.typname, b.typtype = 'e',
       a.attnotnull OR t.typnotnull, a.atthasdef OR a.attidentity <> '',
       a.attgenerated <> '' OR a.attidentity = 'a'
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""

_UNIQUE = """
SELECT array_agg(a.attname::text)
FROM pg_index i
JOIN pg_attribute a
    ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey[:i.indnkeyatts - 1])
WHERE i.indrelid = %s AND i.indisunique AND i.indimmediate AND i.indisvalid
  AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid
"""


def read_table(connection: Connection, name: TableName) -> Table | None:
    """The table of a name; None if there is none that the role can see."""
    found = connection.execute(_TABLE, (name.schema, name.name)).fetchone()
    if found is None:
        return None
    oid, kind, persistence = found
    columns = [TableColumn(*row) for row in connection.execute(_COLUMNS, (oid,))]
    unique = [frozenset(names) for (names,) in connection.execute(_UNIQUE, (oid,))]
    by_name = {column.name: column for column in columns}
    return Table(name, kind, persistence, by_name, frozenset(unique))


def beside_parameters(part: Composable) -> SQL:
    """A part of a statement with parameters: escapes percent signs, which denote these."""
    return SQL(part.as_string().replace("%", "%%"))


def quoted(name: TableName) -> Identifier:
    """A table's name as SQL."""
    return Identifier(name.schema, name.name)


def names(columns: Sequence[str]) -> Composed:
    """Names of columns as SQL, separated by commas."""
    return SQL(", ").join(map(Identifier, columns))
