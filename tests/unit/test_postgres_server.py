"""The server that tests use is a real one, and is cut off as by a crash."""

import psycopg
import pytest
from postgres_server import postgres_server


def test_what_was_committed_survives_the_end_of_the_server():
    with postgres_server() as server:
        server.execute("CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (1)")
        server.restart("immediate")
        server.execute("INSERT INTO kept VALUES (2)")
        server.restart()
        assert server.execute("SELECT n FROM kept ORDER BY n") == [(1,), (2,)]
        server.stop()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.dsn)
