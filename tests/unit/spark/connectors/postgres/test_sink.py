"""The ledger and the rows, on a real server."""

import contextlib
import threading
from dataclasses import replace

import psycopg
import pytest

from cutwater.errors import ConnectorError, RunError
from cutwater.spark.connectors.postgres import connections
from cutwater.spark.connectors.postgres.ledger import LedgerEntry
from cutwater.spark.connectors.postgres.settings import Database


def code(error):
    (problem,) = error.value.problems
    return problem.code


class TestEarly:
    def test_rows_are_there_when_the_task_is_done(self, out):
        out.write(0, {1: [1, 2], 2: [3]})
        assert out.rows() == [("k1", 1), ("k1", 2), ("k2", 3)]
        assert out.sink.row_count(out.claim) == 3

    def test_rows_of_buckets_are_merged_by_their_orders(self, out):
        out.write(0, {1: [1, 3], 2: [2, 4]})
        assert [n for _, n in out.rows()] == [1, 2, 3, 4]

    def test_a_retry_after_the_write_writes_nothing(self, out):
        out.write(0, {1: [1]})
        out.write(0, {1: [1]})
        assert out.rows() == [("k1", 1)]
        assert out.sink.row_count(out.claim) == 1

    def test_a_replay_of_an_epoch_that_is_partly_written_writes_the_rest(self, out):
        out.write(0, {1: [1]})
        out.restart()
        out.write(0, {1: [1], 2: [2]})
        out.write(1, {1: [3]})
        assert out.buckets() == {1: [1, 3], 2: [2]}

    def test_epochs_may_have_gaps(self, out):
        out.write(3, {1: [1]})
        out.write(7, {1: [2]})
        assert out.buckets() == {1: [1, 2]}

    def test_publishing_does_nothing(self, out):
        receipt = out.write(0, {1: [1]})
        out.publish(0, [receipt])
        assert out.rows() == [("k1", 1)]

    def test_of_two_overlapping_attempts_one_writes(self, out):
        """The second waits for the first, which holds the bucket, and then finds it written."""
        second = threading.Thread(target=out.write, args=(0, {1: [1], 2: [2]}))
        with psycopg.connect(out.server.dsn) as first:
            first.execute(
                "INSERT INTO cutwater_buckets VALUES (%s, 1, 0, '', 1)", (f"public.{out.table}",)
            )
            first.execute(f"INSERT INTO {out.table} VALUES ('k1', 1)")
            second.start()
            out.server.wait_for_a_lock()
        second.join()
        assert out.buckets() == {1: [1], 2: [2]}

    def test_an_attempt_that_is_rolled_back_leaves_the_bucket_to_the_other(self, out):
        second = threading.Thread(target=out.write, args=(0, {1: [1]}))
        first = psycopg.connect(out.server.dsn)
        first.execute(
            "INSERT INTO cutwater_buckets VALUES (%s, 1, 0, '', 1)", (f"public.{out.table}",)
        )
        second.start()
        out.server.wait_for_a_lock()
        first.rollback()
        first.close()
        second.join()
        assert out.rows() == [("k1", 1)]

    def test_many_rows_go_in_several_statements(self, out):
        out.write(0, {1: list(range(12_000))})
        assert out.buckets() == {1: list(range(12_000))}


class TestCommit:
    def test_rows_are_there_when_the_epoch_is_published(self, make_out):
        out = make_out(release="commit").ready()
        receipts = [out.write(0, {1: [1, 2]}), out.write(0, {2: [3]})]
        assert out.rows() == []
        out.publish(0, receipts)
        assert out.buckets() == {1: [1, 2], 2: [3]}
        assert out.sink.row_count(out.claim) == 3

    def test_publishing_twice_shows_the_epoch_once(self, make_out):
        out = make_out(release="commit").ready()
        receipts = [out.write(0, {1: [1]})]
        out.publish(0, receipts)
        out.publish(0, receipts)
        out.publish(0, [out.write(0, {1: [1]})])
        assert out.rows() == [("k1", 1)]

    def test_parts_of_a_bucket_follow_one_another(self, make_out):
        out = make_out(release="commit").ready()
        out.publish(0, [out.write(0, {1: [3, 4]}), out.write(0, {1: [1, 2]})])
        assert out.buckets() == {1: [1, 2, 3, 4]}
        assert out.sink.row_count(out.claim) == 4

    def test_only_the_attempts_of_the_receipts_are_shown(self, make_out):
        out = make_out(release="commit").ready()
        out.write(0, {1: [1]})
        out.publish(0, [out.write(0, {1: [1]})])
        assert out.rows() == [("k1", 1)]

    def test_orphans_are_swept(self, make_out):
        out = make_out(release="commit").ready()
        out.write(0, {1: [1]})
        assert list(out.claim.staging.iterdir())
        out.restart()
        assert list(out.claim.staging.iterdir()) == []

    def test_published_files_are_deleted(self, make_out):
        out = make_out(release="commit").ready()
        out.publish(0, [out.write(0, {1: [1]})])
        assert list(out.claim.staging.iterdir()) == []

    def test_only_the_user_can_read_what_is_staged(self, make_out):
        out = make_out(release="commit").ready()
        out.write(0, {1: [1]})
        (path,) = out.claim.staging.iterdir()
        assert path.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_mode & 0o077 == 0

    def test_an_epoch_that_left_early_in_part_is_finished_by_commit(self, make_out):
        out = make_out().ready()
        out.write(0, {1: [1]})
        out.sink = replace(out.sink, release="commit")
        out.restart()
        out.publish(0, [out.write(0, {1: [1], 2: [2]})])
        assert out.buckets() == {1: [1], 2: [2]}


class TestFence:
    def test_the_task_of_a_zombie_is_fenced_and_writes_nothing(self, out):
        zombie = out.claim
        out.restart()
        with pytest.raises(RunError) as error:
            out.write(0, {1: [1]}, zombie)
        assert code(error) == "fenced"
        assert "generation 2 has taken over from generation 1" in str(error.value)
        assert out.rows() == []

    def test_the_driver_of_a_zombie_is_fenced_and_writes_nothing(self, make_out):
        out = make_out(release="commit").ready()
        zombie, staged = out.claim, out.write(0, {1: [1]})
        out.restart()
        with pytest.raises(RunError) as error:
            out.publish(0, [staged], zombie)
        assert code(error) == "fenced"
        assert out.rows() == []

    def test_taking_waits_for_a_transaction_that_is_under_way(self, out):
        with psycopg.connect(out.server.dsn) as under_way:
            under_way.execute(
                "SELECT FROM cutwater_ledger WHERE target = %s FOR SHARE", (f"public.{out.table}",)
            )
            successor = threading.Thread(target=out.restart)
            successor.start()
            out.server.wait_for_a_lock()
            assert successor.is_alive()
        successor.join()

    def test_a_zombie_that_is_paused_in_a_transaction_does_not_hold_up_its_successor(
        self, out, monkeypatch
    ):
        wanted = [("idle_in_transaction_session_timeout", "0", "100ms")]
        monkeypatch.setattr(connections, "_SESSION", wanted)
        zombie = connections._opened(Database(out.server.dsn), "a zombie")
        with contextlib.suppress(psycopg.Error), zombie.transaction():
            out.sink.ledger.claim_epoch(zombie, out.claim, 0, [LedgerEntry(1, 1, b"")])
            out.restart()
            out.write(0, {1: [1]})
            zombie.execute(f"INSERT INTO {out.table} VALUES ('k1', 1)")
        assert zombie.closed
        assert out.rows() == [("k1", 1)]

    def test_a_session_has_a_limit_for_pauses(self, out):
        with connections.connected(Database(out.server.dsn), "someone") as connection:
            query = "SELECT current_setting('idle_in_transaction_session_timeout')"
            assert connection.execute(query).fetchone() == ("1min",)

    def test_an_older_generation_cannot_take_the_table_back(self, out):
        zombie = out.claim
        out.restart()
        with pytest.raises(RunError) as error:
            out.sink.claim(zombie)
        assert code(error) == "fenced"
        assert out.sink.generation("readings") == 2

    def test_another_checkpoint_cannot_take_the_table(self, out):
        with pytest.raises(RunError) as error:
            out.sink.claim(replace(out.claim, query_id="other", generation=9))
        assert code(error) == "fenced"

    def test_a_ledger_that_was_deleted_fences_too(self, out):
        out.server.execute(f"DELETE FROM cutwater_ledger WHERE target = 'public.{out.table}'")
        with pytest.raises(RunError) as error:
            out.write(0, {1: [1]})
        assert code(error) == "fenced"


class TestCheck:
    def problem(self, out, query_id, next_epoch, name="readings"):
        (problem,) = out.sink.check(name, query_id, next_epoch)
        return problem

    def test_a_new_table_may_be_written_to(self, make_out):
        out = make_out()
        assert out.sink.check("readings", None, 0) == []
        assert out.sink.generation("readings") == 0

    def test_its_own_checkpoint_may_go_on(self, out):
        out.write(0, {1: [1]})
        assert out.sink.check("readings", "q", 1) == []

    @pytest.mark.parametrize("query_id", [None, "other"])
    def test_another_checkpoint_is_refused(self, out, query_id):
        out.write(4, {1: [1]})
        problem = self.problem(out, query_id, 5)
        assert problem.code == "another-checkpoint"
        assert "up to epoch 4" in problem.message

    def test_a_checkpoint_that_is_older_than_the_table_is_refused(self, out):
        out.write(4, {1: [1]})
        assert self.problem(out, "q", 4).code == "output-ahead"

    def test_another_sink_of_the_checkpoint_is_refused(self, out):
        assert self.problem(out, "q", 0, name="totals").code == "another-sink"

    def test_a_server_that_is_not_there_is_waited_for_and_then_reported(
        self, make_out, monkeypatch
    ):
        monkeypatch.setattr(connections, "PAUSES_S", (0.0, 0.0))
        out = make_out()
        out.sink = replace(out.sink, dsn="host=127.0.0.1 port=1 dbname=postgres user=tester")
        with pytest.raises(ConnectorError, match=r"database-unavailable.*tried 3 times"):
            self.problem(out, None, 0)


class TestPlace:
    def test_it_says_the_database_and_no_secret(self, out):
        sink = replace(out.sink, dsn="postgresql://u:s3cret@db/shop", table="sales.t")
        assert sink.location == "table sales.t of PostgreSQL at db:5432/shop"
        assert replace(sink, dsn="s3cret").location == "table sales.t of PostgreSQL"


class TestLedgerSchema:
    def test_the_ledger_goes_where_it_is_reported(self, make_out):
        out = make_out(ledger_schema="books")
        out.server.execute("CREATE SCHEMA IF NOT EXISTS books")
        out.ready().write(0, {1: [1]})
        query = f"SELECT epoch FROM books.cutwater_buckets WHERE target = 'public.{out.table}'"
        assert out.server.execute(query) == [(0,)]

    def test_names_are_quoted(self, make_out):
        out = make_out()
        name = 'odd "name"; DROP 100%s {}'
        out.server.execute('CREATE SCHEMA IF NOT EXISTS "Sales 1%"')
        out.sink = replace(out.sink, table=f"Sales 1%.{name}")
        out.ready().write(0, {1: [1]})
        quoted = '"Sales 1%"."odd ""name""; DROP 100%s {}"'
        assert out.server.execute(f"SELECT key, n FROM {quoted}") == [("k1", 1)]


class TestUpsert:
    def test_the_last_row_of_a_key_wins(self, make_out):
        out = make_out(mode="upsert", keys=["key"]).ready()
        out.write(0, {1: [1, 2], 2: [5]})
        out.write(1, {1: [3, 4]})
        assert sorted(out.rows()) == [("k1", 4), ("k2", 5)]

    def test_a_key_may_be_all_there_is(self, make_out):
        out = make_out(mode="upsert", keys=["key", "n"]).ready()
        out.write(0, {1: [1, 2]})
        out.write(1, {1: [1, 3]})
        assert out.rows() == [("k1", 1), ("k1", 2), ("k1", 3)]

    def test_an_old_epoch_does_not_overwrite_a_newer_one(self, make_out):
        out = make_out(mode="upsert", keys=["key"]).ready()
        out.write(0, {1: [1]})
        out.write(1, {1: [2]})
        out.write(0, {1: [1]})
        assert out.rows() == [("k1", 2)]
