"""Checks whether the records of a sink fit an existing Delta table."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from deltalake import DeltaTable, Schema

from cutwater.errors import Problem

__all__ = ["schema_problems", "unsupported_features"]


def schema_problems(
    sink: str, table: DeltaTable, path: str, schema: pa.Schema
) -> Iterator[Problem]:
    """The columns in which a table and a schema differ, one problem each."""
    found = {field.name: field for field in table.schema().fields}
    wanted = {field.name: field for field in Schema.from_arrow(schema).fields}
    owner = f"sink '{sink}': the Delta table {path}"
    for name, field in wanted.items():
        if name not in found:
            yield Problem(
                "missing-column",
                f"{owner} has no column '{name}'; it has: {', '.join(found)}",
                f"add it as {field.type}, or map the records to these columns",
            )
        elif str(found[name].type) != str(field.type):
            yield Problem(
                "column-of-another-type",
                f"{owner} has '{name}' as {found[name].type}; the records have it as {field.type}",
                "cast the field before the sink, or choose another table",
            )
    for name, field in found.items():
        if name not in wanted and not field.nullable:
            yield Problem(
                "column-without-a-field",
                f"{owner} has a column '{name}', which must not be empty, and the records have no "
                "such field",
                "add the field, or allow the column to be empty",
            )


def unsupported_features(sink: str, table: DeltaTable, path: str) -> Iterator[Problem]:
    """Features of a table that its writers must support and this one does not."""
    owner = f"sink '{sink}': the Delta table {path}"
    metadata = table.metadata()
    if metadata.partition_columns:
        yield Problem(
            "partitioned-table",
            f"{owner} is partitioned by {', '.join(metadata.partition_columns)}; only "
            "tables without partitions are supported",
            "choose a table without partitions",
        )
    settings = metadata.configuration
    asked = [name for name in settings if name.startswith("delta.constraints.")]
    if settings.get("delta.columnMapping.mode", "none") != "none":
        asked.append("delta.columnMapping.mode")
    for field in table.schema().fields:
        asked += [f"{n} of '{field.name}'" for n in field.metadata if n.startswith("delta.")]
    if "delta.setTransactionRetentionDuration" in settings:
        asked.append("delta.setTransactionRetentionDuration")
    for name in asked:
        yield Problem(
            "table-feature",
            f"{owner} has {name}, which its writers must support; this one does not",
            "remove it from the table, or choose another table",
        )
