"""A server that goes away, an answer that is lost, attempts that overlap."""

import os
import signal
import threading
import time
from dataclasses import replace

import psycopg
import pytest
from support.connectors.cutting_proxy import cutting_proxy
from support.connectors.postgres_server import PASSWORD, postgres_server
from support.connectors.postgres_sink import Reading

from cutwater.endings import CHANGE, exit_code
from cutwater.errors import ConnectorError, RunError
from cutwater.spark.connectors.postgres import connections
from cutwater.spark.connectors.postgres.settings import Database
from cutwater.testing.connectors.processes import descendants


@pytest.mark.parametrize("release", ["early", "commit"])
def test_a_commit_whose_answer_is_lost_is_not_written_twice(make_out, release):
    out = make_out(release=release).ready()
    with cutting_proxy(out.server.port) as proxy:
        through = out.server.dsn.replace(f"port={out.server.port}", f"port={proxy.port}")
        out.sink = replace(out.sink, dsn=through)
        out.publish(0, [out.write(0, {1: [1]})])
        proxy.cuts_after = b"COMMIT"
        out.publish(1, [out.write(1, {1: [2], 2: [3]})])
        assert proxy.cuts == 1
        assert out.sink.row_count(out.claim) == 3
    assert out.buckets() == {1: [1, 2], 2: [3]}


@pytest.mark.parametrize("release", ["early", "commit"])
def test_a_server_that_is_restarted_under_load_loses_and_doubles_nothing(make_out, release):
    with postgres_server() as server:
        out = make_out(release=release)
        out.server, out.sink = server, replace(out.sink, dsn=server.dsn)
        out.ready()
        finished = []
        enough = threading.Event()

        def work():
            epoch = 0
            while not enough.is_set():
                buckets = {bucket: [epoch * 10 + i for i in range(5)] for bucket in range(4)}
                out.publish(epoch, [out.write(epoch, buckets)])
                finished.append(epoch)
                epoch += 1

        worker = threading.Thread(target=work)
        worker.start()
        for how in ("immediate", "fast", "immediate"):
            seen = len(finished)
            while len(finished) < seen + 5:
                assert worker.is_alive()
                time.sleep(0.01)
            server.restart(how)
        enough.set()
        worker.join()
        expected = [epoch * 10 + i for epoch in finished for i in range(5)]
        # A table has no order: rows may take the place of those that a crash of the server aborted.
        found = {bucket: sorted(rows) for bucket, rows in out.buckets().items()}
        assert found == dict.fromkeys(range(4), expected)


def test_attempts_of_the_same_tasks_at_once_write_each_row_once(out):
    """As with speculation: four tasks with the same buckets, and others."""
    shares = [(0, 1), (1, 0), (0, 1, 2), (2,)]

    def work(share):
        for epoch in range(20):
            out.write(epoch, {bucket: [epoch * 10, epoch * 10 + 1] for bucket in share})
            meeting.wait()

    meeting = threading.Barrier(len(shares))
    threads = [threading.Thread(target=work, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [n for epoch in range(20) for n in (epoch * 10, epoch * 10 + 1)]
    assert out.buckets() == dict.fromkeys(range(3), expected)


def test_a_server_that_stays_away_is_given_up_with_a_sentence(make_out, monkeypatch):
    monkeypatch.setattr(connections, "PAUSES_S", (0.0, 0.0))
    with postgres_server() as server:
        out = make_out()
        out.server, out.sink = server, replace(out.sink, dsn=server.dsn)
        out.ready().write(0, {1: [1]})
        server.stop()
        with pytest.raises(RunError) as error:
            out.write(1, {1: [2]})
        (problem,) = error.value.problems
        assert problem.code == "database-unavailable"
        assert "sink 'readings' could not write epoch 1 to public." in problem.message
        assert "tried 3 times" in problem.message
        server.start()
        out.write(1, {1: [2]})
        assert out.buckets() == {1: [1, 2]}


def test_a_server_that_was_just_starting_is_asked_again(make_out, monkeypatch):
    """It refuses a connection, and accepts the next: that is no refused login."""
    out = make_out()
    connect = connections.Connection.connect
    refusals = iter(["FATAL:  the database system is not yet accepting connections"])

    def starting(*arguments, **settings):
        for words in refusals:
            raise psycopg.OperationalError(words)
        return connect(*arguments, **settings)

    monkeypatch.setattr(connections.Connection, "connect", starting)
    out.ready()
    out.publish(0, [out.write(0, {1: [1]})])
    assert out.buckets() == {1: [1]}


@pytest.fixture
def guarded(make_out):
    """The sink of a role that has a password and may do nothing."""
    out = make_out(ledger_schema="guarded_books")
    out.server.execute("CREATE SCHEMA IF NOT EXISTS guarded_books")
    out.sink = replace(out.sink, dsn=out.server.dsn.replace("tester", "guarded"))
    return out


class TestPassword:
    def test_it_is_found_in_a_variable(self, guarded, monkeypatch):
        monkeypatch.setenv("READINGS_PASSWORD", PASSWORD)
        sink = replace(guarded.sink, password_env="READINGS_PASSWORD")
        assert sink.check("readings", None, 0) == []

    def test_it_is_found_in_a_file(self, guarded, tmp_path):
        (tmp_path / "password").write_text(f"{PASSWORD}\n")
        sink = replace(guarded.sink, password_file=str(tmp_path / "password"))
        assert sink.check("readings", None, 0) == []

    def test_a_wrong_one_is_not_shown(self, guarded, monkeypatch):
        monkeypatch.setenv("WRONG_PASSWORD", "gue55ed")
        sink = replace(guarded.sink, password_env="WRONG_PASSWORD")
        (problem,) = sink.check("readings", None, 0)
        assert problem.code == "login-refused"
        assert "gue55ed" not in str(problem)

    @pytest.mark.parametrize(
        "setting", [{"password_env": "NOT_SET_ANYWHERE"}, {"password_file": "not-there"}]
    )
    def test_one_that_is_missing_gets_a_sentence(self, guarded, setting):
        (problem,) = replace(guarded.sink, **setting).check("readings", None, 0)
        assert problem.code == "no-password"

    @pytest.mark.parametrize(
        "dsn", ["host=h dbname=d password=s3cret", "postgresql://u:s3cret@h/d"]
    )
    def test_one_in_the_dsn_is_refused_and_not_shown(self, guarded, dsn):
        sink = replace(guarded.sink, dsn=dsn)
        (problem,) = sink.problems("readings", int)
        assert problem.code == "secret-in-settings"
        assert "s3cret" not in f"{problem} {sink!r}"

    def test_a_dsn_that_cannot_be_read_is_not_shown(self, guarded):
        (problem,) = replace(guarded.sink, dsn="host=h s3cret").problems("readings", int)
        assert problem.code == "unreadable-dsn"
        assert "s3cret" not in str(problem)


class TestPrivileges:
    @pytest.fixture
    def owner(self, guarded, monkeypatch):
        """The same sink for a role that may do everything; it has made the tables."""
        monkeypatch.setenv("READINGS_PASSWORD", PASSWORD)
        guarded.sink = replace(guarded.sink, password_env="READINGS_PASSWORD", create=False)
        owner = replace(guarded.sink, dsn=guarded.server.dsn, create=True)
        owner.prepare("readings", Reading)
        owner.claim(guarded.claim)
        return owner

    def test_what_the_documentation_lists_is_enough(self, owner, guarded):
        for grant in (
            f"GRANT SELECT, INSERT, UPDATE ON {guarded.table} TO guarded",
            "GRANT USAGE ON SCHEMA guarded_books TO guarded",
            "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA guarded_books TO guarded",
        ):
            guarded.server.execute(grant)
        assert guarded.sink.check("readings", "q", 0) == []
        assert guarded.sink.schema_problems("readings", Reading) == []
        guarded.restart()
        guarded.write(0, {1: [1]})
        assert guarded.rows() == [("k1", 1)]

    def test_what_is_missing_is_reported(self, owner, guarded):
        guarded.server.execute(
            "GRANT USAGE ON SCHEMA guarded_books TO guarded",
            "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA guarded_books TO guarded",
        )
        with pytest.raises(RunError) as error:
            guarded.write(0, {1: [1]})
        (problem,) = error.value.problems
        assert (problem.code, exit_code(error.value)) == ("refused-by-postgres", CHANGE)
        assert f"permission denied for table {guarded.table}" in problem.message
        assert "docs/postgres.md" in problem.hint
        assert guarded.sink.row_count(guarded.claim) == 0


def processes_of(server):
    return descendants(server.pid)


def test_a_frozen_server_is_given_up_in_time_and_nothing_is_written_twice(make_out, monkeypatch):
    """SIGSTOP leaves the connection open: only the clock of the client tells."""
    monkeypatch.setattr(connections, "PAUSES_S", (0.0,))
    monkeypatch.setattr(connections, "_ANSWER_S", 1.0)
    monkeypatch.setitem(connections._CONNECTION_DEFAULTS, "connect_timeout", 2)
    with postgres_server() as server:
        out = make_out()
        out.server, out.sink = server, replace(out.sink, dsn=server.dsn)
        out.ready().write(0, {1: [1]})
        frozen = processes_of(server)
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(ConnectorError, match="database-unavailable"):
                out.write(1, {1: [2]})
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        out.write(1, {1: [2]})
        assert out.buckets() == {1: [1, 2]}


def test_a_statement_has_as_long_as_its_role_says(make_out):
    out = make_out()
    dsn = f"{out.server.dsn} options='-c statement_timeout=5s'"
    with connections.connected(Database(dsn), "sink 'x'") as connection:
        assert connection.answer_s == 15.0
    with connections.connected(Database(out.server.dsn), "sink 'x'") as connection:
        assert connection.answer_s == connections._ANSWER_S
