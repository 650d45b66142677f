"""An output that is not as its checkpoint left it: for every kind of sink the same laws."""

import datetime as dt
import shutil
import time
from dataclasses import dataclass, replace

import pytest
from deltalake import DeltaTable
from support.connectors.sink_places import KINDS, Mean, Place, kinds
from support.connectors.sink_rows import codes
from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater.errors import RefusedError
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.sink_records import changed_outputs, note_released, remember_sinks
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.connectors.kafka import transactions
from cutwater.spark.connectors.kafka.checks import topics_of
from cutwater.spark.connectors.kafka.sink import KafkaTopic
from cutwater.spark.connectors.postgres.sink import PostgresTable
from cutwater.spark.recovery import Resumption, agree


def a_flow():
    flow = cw.Flow("f")
    flow.sink("means", flow.source("items", Mean))
    return flow


@dataclass
class World:
    """A checkpoint and the output of its sink, over several starts."""

    place: Place
    checkpoint: Checkpoint
    epochs: int = 0
    generation: int = 0

    def job(self, **changes):
        sink = replace(self.place.sink, **changes)
        made = make_job(a_flow(), self.checkpoint.root.parent, sinks={"means": sink})
        return replace(made, query_id="q", generation=self.generation)

    def start(self, accept_gap=(), **changes):
        """As a run does it."""
        self.agree(accept_gap, **changes)
        self.generation += 1
        job = self.job(**changes)
        self.checkpoint.save(replace(identity_of(job, 2), query_id="q"))
        sink = job.sinks["means"]
        sink.prepare("means", Mean)
        sink.claim(job.claim_of("means"))
        remember_sinks(self.checkpoint.root, job, accept_gap)
        self.place.sink = sink

    def agree(self, accept_gap=(), **changes):
        return agree(self.checkpoint, self.job(**changes), Resumption(accept_gap=accept_gap))

    def refused(self, **how):
        with pytest.raises(RefusedError) as error:
            self.agree(**how)
        return error.value

    def show(self, *values):
        """An epoch, as the writer publishes it."""
        self.place.show(self.job().claim_of("means"), self.epochs, *values)
        note_released(self.checkpoint.root, self.epochs, ["means"])
        (self.checkpoint.spark / "offsets" / str(self.epochs)).write_text('v1\n{"conf": {}}\n')
        (self.checkpoint.spark / "commits" / str(self.epochs)).write_text("v1\n{}\n")
        self.epochs += 1


@pytest.fixture(params=kinds(*KINDS))
def world(request, tmp_path):
    sink, rows = KINDS[request.param](request, tmp_path)
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.create()
    made = World(Place(sink, rows, str(tmp_path)), checkpoint)
    made.start()
    for log in ("offsets", "commits"):
        (checkpoint.spark / log).mkdir(parents=True)
    yield made
    transactions._writers.clear()
    transactions._ledgers.clear()


@pytest.fixture
def backup(world, request, tmp_path):
    """A function that makes a backup of the output, and returns one that restores it."""

    def of_files():
        shutil.copytree(world.place.sink.path, tmp_path / "backup")

        def restore():
            shutil.rmtree(world.place.sink.path)
            shutil.copytree(tmp_path / "backup", world.place.sink.path)

        return restore

    def of_table():
        server, table = request.getfixturevalue("postgres"), world.place.sink.table
        kept = f"SELECT * FROM {table}", "SELECT * FROM cutwater_buckets"
        for number, query in enumerate(kept):
            server.execute(f"CREATE TABLE {table}_{number} AS {query}")

        def restore():
            server.execute(
                f"TRUNCATE {table}",
                f"INSERT INTO {table} SELECT * FROM {table}_0",
                f"DELETE FROM cutwater_buckets WHERE target = 'public.{table}'",
                f"INSERT INTO cutwater_buckets SELECT * FROM {table}_1 "
                f"WHERE target = 'public.{table}'",
            )

        return restore

    def of_topic():
        """There is none of a topic: it is made again."""
        broker = request.getfixturevalue("broker")

        def restore():
            topic, admin = world.place.sink.topic, broker.admin()
            before = topics_of(world.place.sink.cluster).find(topic)
            admin.delete_topics([topic])[topic].result(60)
            broker.topic(topic, partitions=2)
            while topics_of(world.place.sink.cluster).find(topic) in (None, before):
                pass  # the broker hears of it from itself, a little later

        return restore

    kind = {KafkaTopic: of_topic, PostgresTable: of_table}
    return kind.get(type(world.place.sink), of_files)


def test_an_output_as_it_was_left_is_gone_on_with(world):
    world.agree()
    for values in ((1, 2), (3,)):
        world.show(*values)
        world.agree()
        world.start()
    assert world.place.seen() == [1, 2, 3]


def test_an_output_that_was_restored_from_a_backup_is_refused(world, backup):
    world.show(1)
    restore = backup()
    world.show(2)
    restore()
    error = world.refused()
    assert codes(error.problems) == ["output-behind"]
    assert "up to epoch 1" in str(error)
    assert "--accept-gap means" in str(error)


def test_a_gap_that_is_accepted_is_not_refused_again(world, backup):
    world.show(1)
    restore = backup()
    world.show(2)
    restore()
    world.start(accept_gap=["means"])
    world.start()
    world.show(3)
    world.start()
    expected = [3] if isinstance(world.place.sink, KafkaTopic) else [1, 3]
    assert world.place.seen() == expected


@pytest.mark.parametrize("world", kinds(*(k for k in KINDS if "kafka" not in k)), indirect=True)
def test_a_checkpoint_that_is_restored_with_its_output_goes_on(world, backup, tmp_path):
    world.show(1)
    restore = backup()
    shutil.copytree(world.checkpoint.root, tmp_path / "both")
    world.show(2)
    restore()
    shutil.rmtree(world.checkpoint.root)
    shutil.copytree(tmp_path / "both", world.checkpoint.root)
    world.epochs = 1
    world.start()
    world.show(2)
    assert world.place.seen() == [1, 2]


def version_of(world):
    """The version of the table, and a time that lies well between it and the next."""
    time.sleep(0.02)
    moment = dt.datetime.now(dt.UTC)
    time.sleep(0.02)
    return {"version": DeltaTable(world.place.sink.path).version(), "time": moment}


@pytest.mark.parametrize("by", ["version", "time"])
@pytest.mark.parametrize("world", kinds("delta"), indirect=True)
class TestATableThatWasRolledBack:
    def test_epochs_that_were_undone_are_missed(self, world, by):
        world.show(1)
        before = version_of(world)
        world.show(2)
        DeltaTable(world.place.sink.path).restore(before[by])
        error = world.refused()
        assert codes(error.problems) == ["output-behind"]
        assert "has them up to epoch 0" in str(error)
        world.start(accept_gap=["means"])
        world.start()
        world.show(3)
        world.start()
        assert world.place.seen() == [1, 3]
        assert world.place.sink.row_count(world.job().claim_of("means")) == 2

    def test_one_that_lost_no_epoch_or_got_it_back_is_gone_on_with(self, world, by):
        world.show(1)
        before = version_of(world)
        world.show(2)
        newest = version_of(world)
        world.start()
        DeltaTable(world.place.sink.path).restore(newest[by])
        world.agree()
        DeltaTable(world.place.sink.path).restore(before[by])
        DeltaTable(world.place.sink.path).restore(newest[by])
        world.start()
        world.show(3)
        assert world.place.seen() == [1, 2, 3]

    def test_a_checkpoint_that_is_restored_with_it_goes_on(self, world, by, tmp_path):
        world.show(1)
        before = version_of(world)
        shutil.copytree(world.checkpoint.root, tmp_path / "both")
        world.show(2)
        DeltaTable(world.place.sink.path).restore(before[by])
        shutil.rmtree(world.checkpoint.root)
        shutil.copytree(tmp_path / "both", world.checkpoint.root)
        world.epochs = 1
        world.start()
        world.show(2)
        assert world.place.seen() == [1, 2]
        assert world.place.sink.row_count(world.job().claim_of("means")) == 2


def test_a_sink_without_rows_so_far_is_asked_for_none(world, backup):
    restore = backup()
    world.agree()
    restore()
    world.agree()


def elsewhere(world, request):
    """The settings that bind the sink to another output."""
    match world.place.sink:
        case KafkaTopic():
            return {"topic": request.getfixturevalue("broker").topic(partitions=2)}
        case PostgresTable():
            return {"table": f"{world.place.sink.table}_2"}
    return {"path": f"{world.place.sink.path}-2"}


def test_another_output_is_refused_unless_the_gap_is_accepted(world, request):
    world.show(1)
    other = elsewhere(world, request)
    error = world.refused(**other)
    assert codes(error.problems) == ["another-output"]
    was = world.place.sink.location
    assert was in str(error)
    world.start(accept_gap=["means"], **other)
    world.show(2)
    world.agree(**other)


def test_a_sink_that_the_flow_does_not_have_is_named(world):
    assert codes(world.refused(accept_gap=["medians"]).problems) == ["unknown-sink"]


# --- ledgers that lie apart --------------------------------------------------------------------


def another_ledger(world, request):
    if isinstance(world.place.sink, KafkaTopic):
        return {"ledger": f"other-{world.place.sink.ledger}"}
    schema = f"ledgers_of_{world.place.sink.table}"
    request.getfixturevalue("postgres").execute(f"CREATE SCHEMA {schema}")
    return {"ledger_schema": schema}


APART = kinds("postgres-early", "postgres-commit", "kafka-early", "kafka-commit")


@pytest.mark.parametrize("world", APART, indirect=True)
@pytest.mark.parametrize("has_released", [False, True])
def test_another_ledger_of_the_same_output_is_refused(world, request, has_released):
    """Even if nothing is noted: a crash may have come between an epoch and its note."""
    if has_released:
        world.show(1)
    other = another_ledger(world, request)
    was = world.place.sink.ledger_location
    for accept_gap in ((), ["means"]):
        error = world.refused(accept_gap=accept_gap, **other)
        assert codes(error.problems) == ["another-ledger"]
        assert was in str(error)
    world.agree()


@pytest.mark.parametrize("world", kinds("postgres-commit"), indirect=True)
def test_a_ledger_that_was_moved_is_known(world, request, postgres):
    world.show(1)
    other = another_ledger(world, request)
    postgres.execute(
        f"CREATE TABLE {other['ledger_schema']}.cutwater_ledger AS TABLE cutwater_ledger",
        f"CREATE TABLE {other['ledger_schema']}.cutwater_buckets AS TABLE cutwater_buckets",
    )
    world.agree(**other)


# --- folders -----------------------------------------------------------------------------------


@pytest.mark.parametrize("world", kinds("jsonl", "parquet"), indirect=True)
def test_epochs_that_readers_delete_are_not_missed(world):
    world.show(1)
    world.show(2)
    for epoch in (0, 1):
        shutil.rmtree(world.place.sink.directory(epoch))
    world.start()


@pytest.mark.parametrize("world", kinds("jsonl"), indirect=True)
def test_notes_that_a_power_failure_cut_are_done_without(world):
    world.show(1)
    world.place.sink._newest.write_text("")
    world.agree()
    (world.checkpoint.root / "released.json").write_text('{"means": "4')
    assert changed_outputs(world.checkpoint.root, "means", world.place.sink, "q") == []


@pytest.mark.parametrize("world", kinds("jsonl"), indirect=True)
def test_an_output_that_is_gone_is_refused(world):
    world.show(1)
    shutil.rmtree(world.place.sink.path)
    assert "knows nothing of this checkpoint" in str(world.refused())
    assert isinstance(world.place.sink, Folder)
