"""The server that tests use is a real one, and is cut off as by a crash."""

import psycopg
import pytest
from support.connectors import postgres_server as module
from support.connectors.postgres_server import postgres_server


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


def test_without_a_server_a_test_is_not_run(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "PACKAGED", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUTWATER_POSTGRES", str(tmp_path))
    left_out = "not run: no PostgreSQL server found; `make services` provides it"
    with pytest.raises(pytest.skip.Exception, match=left_out), postgres_server():
        pass
