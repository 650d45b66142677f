"""The conformance kit, for both connectors of this package."""

import sqlite3
from contextlib import closing

import pytest
from cutwater_sqlite import SqliteRows, SqliteTable

from cutwater.testing.connectors import KilledSink, KilledSource, SinkLaws, SourceLaws


class Table:
    def make_sink(self, folder):
        return SqliteTable(str(folder / "out.db"), "counts")

    def read(self, sink):
        with closing(sqlite3.connect(sink.path)) as connection:
            connection.row_factory = sqlite3.Row
            try:
                return connection.execute(f"SELECT * FROM {sink.table} ORDER BY rowid").fetchall()
            except sqlite3.OperationalError:  # there is no such table yet
                return []


class Rows:
    def make_source(self, folder):
        return SqliteRows(str(folder / "in.db"), "clicks", max_rows_per_epoch=100)

    def append(self, source, clicks):
        with closing(sqlite3.connect(source.path, timeout=60)) as connection, connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {source.table} (key, position)")
            rows = [(click.key, click.position) for click in clicks]
            connection.executemany(f"INSERT INTO {source.table} VALUES (?, ?)", rows)


class TestTable(Table, SinkLaws):
    pass


class TestRows(Rows, SourceLaws):
    pass


@pytest.mark.slow
class TestKilledTable(Table, KilledSink):
    pass


@pytest.mark.slow
class TestKilledRows(Rows, KilledSource):
    pass
