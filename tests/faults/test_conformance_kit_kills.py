"""The half of the conformance kit that kills: it rejects a sink that writes an epoch twice."""

import sqlite3
from contextlib import closing

import pytest
from support.connectors.forgetful_table import ForgetfulTable

from cutwater.testing.connectors import KilledSink


class Kit(KilledSink):
    points = ("some-buckets",)
    seed = 1

    def make_sink(self, folder):
        return ForgetfulTable(str(folder / "out.db"), "counts")

    def read(self, sink):
        with closing(sqlite3.connect(sink.path)) as connection:
            connection.row_factory = sqlite3.Row
            try:
                return connection.execute(f"SELECT * FROM {sink.table} ORDER BY rowid").fetchall()
            except sqlite3.OperationalError:  # there is no such table yet
                return []


@pytest.mark.spark
@pytest.mark.slow
def test_a_sink_that_forgets_its_ledger_is_rejected(tmp_path, request):
    kit = Kit()
    run = KilledSink.run.__wrapped__(kit, tmp_path, request)
    with pytest.raises(AssertionError, match="the rows of"):
        kit.test_kills_lose_double_and_reorder_nothing(run)
