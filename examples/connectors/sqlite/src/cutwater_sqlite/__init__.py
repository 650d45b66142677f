"""SQLite tables as sources and sinks of Cutwater."""

from cutwater_sqlite.sink import SqliteTable
from cutwater_sqlite.source import SqliteRows

__all__ = ["SqliteRows", "SqliteTable"]
