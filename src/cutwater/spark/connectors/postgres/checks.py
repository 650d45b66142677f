"""Checks whether a table can be the target of a sink."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cutwater.errors import Problem
from cutwater.spark.connectors.base.refusals import ANOTHER_CHECKPOINT, OUTPUT_AHEAD, TAKE_OVER
from cutwater.spark.connectors.postgres.fields import Field, holds
from cutwater.spark.connectors.postgres.ledger import POSTGRES_LEDGER_FORMAT, LedgerHeader
from cutwater.spark.connectors.postgres.settings import TableName
from cutwater.spark.connectors.postgres.tables import Table

__all__ = ["ledger_problems", "missing_table", "table_problems"]

_KINDS = {
    "v": "a view",
    "m": "a materialised view",
    "f": "a foreign table",
    "S": "a sequence",
    "i": "an index",
    "I": "an index",
    "c": "a type",
}


def missing_table(sink: str, name: TableName, definition: str) -> Problem:
    """The table does not exist."""
    return Problem(
        "missing-table",
        f"sink '{sink}' goes to {name}, which does not exist, or which this role cannot see",
        f"create it, or pass create=True, which runs: {definition}",
    )


def table_problems(
    sink: str, table: Table, fields: Sequence[Field], keys: Sequence[str]
) -> Iterator[Problem]:
    """Why a table cannot hold rows with these fields."""
    if table.kind not in ("r", "p"):
        yield Problem(
            "no-table",
            f"sink '{sink}' goes to {table.name}, which is {_KINDS.get(table.kind, table.kind)}; "
            "rows and ledger commit together only in a table",
            "name the table itself",
        )
        return
    if table.persistence != "p":
        yield Problem(
            "unlogged-table",
            f"sink '{sink}' goes to {table.name}, which is unlogged: a crash of the server empties "
            "it, while the ledger says that the rows are there",
            f"ALTER TABLE {table.name} SET LOGGED",
        )
    for field in fields:
        yield from _field_problems(sink, table, field)
    yield from _unfilled(sink, table, {field.column for field in fields})
    if keys and frozenset(keys) not in table.unique:
        yield Problem(
            "no-unique-key",
            f"sink '{sink}' replaces rows of {table.name} by {', '.join(keys)}, but no constraint "
            "or index makes exactly these unique",
            f"ALTER TABLE {table.name} ADD UNIQUE ({', '.join(keys)}), or name other keys",
        )


def _field_problems(sink: str, table: Table, field: Field) -> Iterator[Problem]:
    column = table.columns.get(field.column)
    if column is None:
        yield Problem(
            "missing-column",
            f"sink '{sink}': table {table.name} has no column '{field.column}' for the field of "
            f"that name; it has: {', '.join(table.columns)}",
            f"ALTER TABLE {table.name} ADD {field.column} {field.sql_type}, or leave the field out",
        )
    elif column.is_generated:
        yield Problem(
            "generated-column",
            f"sink '{sink}': column '{field.column}' of {table.name} is GENERATED ALWAYS, so no "
            "row may give it a value",
            "leave the field out, or make the column an ordinary one",
        )
    elif not holds(column, field):
        yield Problem(
            "column-type",
            f"sink '{sink}': column '{field.column}' of {table.name} is {column.type}, which "
            f"cannot hold every {field.kind}",
            f"make it {field.sql_type}, or convert the field in a step before the sink",
        )
    elif column.is_required and field.is_optional:
        yield Problem(
            "column-not-null",
            f"sink '{sink}': field '{field.column}' may be None, and the column of {table.name} is "
            "NOT NULL",
            f"ALTER TABLE {table.name} ALTER {field.column} DROP NOT NULL, or annotate the field "
            "without None",
        )


def _unfilled(sink: str, table: Table, filled: set[str]) -> Iterator[Problem]:
    for column in table.columns.values():
        is_free = column.has_default or column.is_generated or not column.is_required
        if column.name not in filled and not is_free:
            yield Problem(
                "unfilled-column",
                f"sink '{sink}': column '{column.name}' of {table.name} is NOT NULL and has no "
                "default, and no field fills it",
                f"ALTER TABLE {table.name} ALTER {column.name} SET DEFAULT ..., or add a field",
            )


def ledger_problems(
    sink: str, name: TableName, held: LedgerHeader | None, query_id: str | None, next_epoch: int
) -> Iterator[Problem]:
    """Why a checkpoint must not write to a table, according to its ledger."""
    if held is None:
        return
    if held.format != POSTGRES_LEDGER_FORMAT:
        yield Problem(
            "ledger-format",
            f"sink '{sink}': the ledger of {name} has format {held.format}; this version writes "
            f"format {POSTGRES_LEDGER_FORMAT}",
            "use the version that wrote it, or another table",
        )
    elif held.query_id != query_id:
        yield Problem(
            ANOTHER_CHECKPOINT,
            f"sink '{sink}' goes to {name}, which belongs to another checkpoint of flow "
            f"'{held.flow}' and has rows up to epoch {held.newest_epoch}; epochs start again with "
            "this checkpoint, so rows would be dropped or duplicated",
            "run with the checkpoint that wrote it; or, if that was deleted, choose another table, "
            f"or {TAKE_OVER}",
        )
    elif held.sink != sink:
        yield Problem(
            "another-sink",
            f"sink '{sink}' goes to {name}, which belongs to sink '{held.sink}' of the same "
            "checkpoint",
            f"bind '{sink}' to the table it had before, or to another one",
        )
    elif held.newest_epoch >= next_epoch:
        yield Problem(
            OUTPUT_AHEAD,
            f"sink '{sink}': {name} has rows of epoch {held.newest_epoch}, but the checkpoint "
            f"knows only the epochs before {next_epoch}; the checkpoint is older than its output",
            "restore the newest checkpoint, or start over with another table and a new checkpoint",
        )
