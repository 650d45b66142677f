"""A table that rows are only ever added to, read by its rowid.

SQLite writes one transaction at a time, so the rowids of a table that only grows ascend in the
order in which rows become visible: what is below the greatest one that was seen never changes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from cutwater.spark.connectors import (
    Chunk,
    Planner,
    RawBatch,
    RecordReader,
    Replay,
    SourceConnector,
)

BATCH_ROWS = 10_000


@dataclass(frozen=True)
class SqliteRows(SourceConnector):
    """The rows of a table, each as a record with its columns."""

    path: str
    table: str
    max_rows_per_epoch: int = 100_000
    idle_after: float | None = None

    kind: ClassVar[str] = "rows of SQLite"
    partitions_noun: ClassVar[str] = "tables"
    unit: ClassVar[str] = "rows"
    min_task_weight: ClassVar[int] = 10_000

    def replay(self) -> Replay:
        return Replay(
            True, "rows have ascending rowids", "rows are added and neither changed nor deleted"
        )

    def absolute(self) -> SqliteRows:
        return SqliteRows(str(Path(self.path).absolute()), self.table, self.max_rows_per_epoch)

    def planner(self, tp: Any, now: Callable[[], float]) -> Planner:
        return _Planner(self)

    def reader(self, tp: Any) -> RecordReader:
        return _Reader(self, tp)

    def location(self, chunk: Chunk, position: int) -> str:
        return f"row {position} of table {self.table} in {self.path}"

    def coordinates(self, chunk: Chunk, position: int) -> dict[str, Any]:
        return {"path": self.path, "table": self.table, "rowid": position}

    def query(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """The result of a query; none if the file or the table is not there yet."""
        if not Path(self.path).exists():
            return []
        with closing(sqlite3.connect(self.path, timeout=60)) as connection:
            connection.row_factory = sqlite3.Row
            known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
            if connection.execute(known, [self.table]).fetchone() is None:
                return []
            return connection.execute(sql.format(table=_quoted(self.table)), values).fetchall()


class _Planner(Planner):
    """Goes by rowids: from the one after the last of the log to the greatest that is there."""

    def __init__(self, source: SqliteRows) -> None:
        self._source = source
        self._next = 1
        self._frozen: int | None = None

    def advance(self, chunk: Chunk) -> None:
        self._next = chunk.end

    def freeze(self) -> None:
        self._frozen = self._end()

    def _end(self) -> int:
        found = self._source.query("SELECT max(rowid) FROM {table}")
        return (found[0][0] or 0) + 1 if found else 1

    def has_input(self) -> bool:
        return self._next < self._end()

    def poll(self) -> list[Chunk]:
        end = self._end() if self._frozen is None else self._frozen
        end = min(end, self._next + self._source.max_rows_per_epoch)
        return [Chunk(0, self._next, end)] if self._next < end else []


class _Reader(RecordReader):
    def __init__(self, source: SqliteRows, tp: Any) -> None:
        self._source = source
        self._type = tp

    def batches(self, chunk: Chunk) -> Iterator[RawBatch]:
        sql = "SELECT rowid AS _rowid, * FROM {table} WHERE rowid >= ? AND rowid < ? ORDER BY rowid"
        for start in range(chunk.start, chunk.end, BATCH_ROWS):
            rows = self._source.query(sql, start, min(start + BATCH_ROWS, chunk.end))
            if rows:
                yield RawBatch([dict(row) for row in rows], [row["_rowid"] for row in rows])

    def decode_one(self, raw: dict[str, Any]) -> Any:
        return msgspec.convert(raw, self._type)

    def preview(self, raw: dict[str, Any]) -> bytes:
        return repr(raw).encode()


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
