"""The rows of a table as a source.

A key alone does not tell what is unread: keys are assigned before their transactions commit, so a
smaller one may appear after a larger one was read. For transactions there is such a bound: all
below the oldest one that is still running have ended. So rows are read by (transaction, key) up to
that horizon; below it, a table never gets another row.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from cutwater.errors import Problem
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.long_records import MAX_RECORD_BYTES
from cutwater.spark.connectors.base.source import (
    Chunk,
    Planner,
    RecordReader,
    Replay,
    SourceConnector,
)
from cutwater.spark.connectors.postgres.settings import Database, TableName, name_problems

__all__ = ["PostgresRows"]

_SIGN = 1 << 63


@dataclass(frozen=True, kw_only=True)
class PostgresRows(SourceConnector):
    """The rows of a table, by transaction and key; see `postgres_rows`."""

    table: str
    dsn: str = field(repr=False)
    key: str
    transaction: str | None = None
    max_rows_per_epoch: int = 100_000
    max_bytes_per_epoch: int = 32 << 20
    max_record_bytes: int = MAX_RECORD_BYTES
    idle_after: float | None = None
    password_env: str | None = None
    password_file: str | None = None

    kind: ClassVar[str] = "rows of PostgreSQL"
    partitions_noun: ClassVar[str] = "tables"
    unit: ClassVar[str] = "rows"
    min_task_weight: ClassVar[int] = 1_000

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName.of(self.table)

    @property
    def database(self) -> Database:
        """The database of the table."""
        return Database(self.dsn, self.password_env, self.password_file)

    def replay(self) -> Replay:
        if self.transaction is None:
            return Replay(
                False,
                f"{self.name} is read by {self.key} alone, and a row that commits after one with a "
                "larger key is left out",
                "rows commit in the order of their keys, for instance because one session at a "
                "time writes them",
                remedy="with transaction=COLUMN",
            )
        return Replay(
            True,
            f"{self.name} is read by transaction and key, below the oldest transaction that is "
            "under way",
            "rows are not changed or deleted before they are read",
        )

    def problems(self, name: str, step: Source) -> Iterator[Problem]:
        owner = f"source '{name}'"
        yield from self.database.problems(owner)
        yield from name_problems(owner, self.table)
        for what in ("rows", "bytes"):
            limit = f"max_{what}_per_epoch"
            if getattr(self, limit) < 1:
                yield Problem(
                    "no-progress",
                    f"{owner} may read {getattr(self, limit)} {what} in an epoch; an epoch reads "
                    "at least one",
                    f"leave {limit} out, or make it larger",
                )
        if self.max_record_bytes < 1:
            yield Problem(
                "no-progress",
                f"max_record_bytes of {owner} is {self.max_record_bytes}; it must be at least 1",
                "leave max_record_bytes out, or make it larger",
            )

    def check(self, name: str, step: Source) -> Iterator[Problem]:
        from cutwater.spark.connectors.postgres.reading import source_table_problems

        yield from source_table_problems(self, name, step.type)

    def planner(self, tp: Any, now: Callable[[], float]) -> Planner:
        from cutwater.spark.connectors.postgres.reading import RowsPlanner

        return RowsPlanner(self, tp)

    def reader(self, tp: Any) -> RecordReader:
        from cutwater.spark.connectors.postgres.reading import RowsReader

        return RowsReader(self, tp)

    def weight(self, chunk: Chunk) -> int:
        return int(chunk.about["rows"])

    def cut(self, chunk: Chunk, amount: int) -> Any:
        return chunk.end

    @classmethod
    def merge(cls, before: Chunk, after: Chunk) -> Chunk:
        rows = cls.measure(before) + cls.measure(after)
        return replace(after, start=before.start, about={**after.about, "rows": rows})

    @classmethod
    def measure(cls, chunk: Chunk) -> int:
        return int(chunk.about.get("rows", 0))

    @classmethod
    def partition_name(cls, chunk: Chunk) -> str:
        return str(chunk.about.get("table", ""))

    def sort_keys(self, positions: Sequence[Any]) -> list[bytes]:
        return [xid.to_bytes(8, "big") + _key_bytes(key) for xid, key in positions]

    def position_of(self, chunk: Chunk, order: bytes) -> Any:
        xid, key = int.from_bytes(order[:8], "big"), order[8:]
        if isinstance(chunk.end[1], str):
            return xid, str(uuid.UUID(bytes=key[:16]))
        return xid, int.from_bytes(key[:8], "big") - _SIGN

    def location(self, chunk: Chunk, position: Any) -> str:
        xid, key = position
        message = f"{self.name}, {self.key} = {key}"
        return f"{message} of transaction {xid}" if self.transaction else message

    def coordinates(self, chunk: Chunk, position: Any) -> dict[str, Any]:
        return {"table": str(self.name), "transaction": position[0], "key": position[1]}


def _key_bytes(key: Any) -> bytes:
    """Bytes that sort as PostgreSQL sorts keys: integers, or UUIDs given as text."""
    if isinstance(key, int):
        return (key + _SIGN).to_bytes(8, "big")
    return uuid.UUID(key).bytes
