"""A sink that belongs to another checkpoint, taken over: for every kind of sink the same laws."""

import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

import psycopg
import pytest
from deltalake import DeltaTable
from psycopg.conninfo import make_conninfo
from support.connectors.sink_rows import codes, lane

from cutwater.errors import FencedError, RunError
from cutwater.observers.delta import DeltaObserver
from cutwater.observers.folder import FolderObserver
from cutwater.observers.kafka import KafkaObserver
from cutwater.observers.postgres import PostgresObserver
from cutwater.spark.connectors.base.sink import Claim, Lane, Sink
from cutwater.spark.connectors.delta.ledger import DeltaLog
from cutwater.spark.connectors.delta.sink import Delta
from cutwater.spark.connectors.files import sink as folder
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.connectors.kafka import sink as kafka_topic
from cutwater.spark.connectors.kafka import transactions
from cutwater.spark.connectors.kafka.checks import Topics
from cutwater.spark.connectors.kafka.sink import KafkaTopic
from cutwater.spark.connectors.postgres import postgres_table
from cutwater.spark.storage.durable import write_json


@dataclass(frozen=True)
class Mean:
    name: str
    value: int


@dataclass
class Place:
    """A sink, and what a reader sees of it."""

    sink: Sink
    rows: Callable[[], list[dict]]
    checkpoints: str

    def claim(self, query_id, generation=1):
        folder = f"{self.checkpoints}/{query_id}"
        return Claim("f", "means", query_id, generation, folder)

    def take(self, claim):
        self.sink.make_ready("means", Mean)
        self.sink.take(claim)
        return claim

    def take_over(self, claim, *, keep):
        """As a run does it."""
        self.sink.take_over(claim, keep=keep)
        self.sink.take(claim)

    def show(self, claim, epoch, *values):
        self.sink.publish(claim, epoch, [self.write(claim, epoch, *values)])

    def write(self, claim, epoch, *values):
        made = lane(Mean, [Mean("a", value) for value in values], first=epoch * 100)
        if self.sink.takes == "lines":
            lines = [json.dumps({"name": "a", "value": value}).encode() + b"\n" for value in values]
            made = Lane(made.label, made.orders, lines)
        return self.sink.write(claim, epoch, Mean, [made])

    def seen(self):
        return sorted(row["value"] for row in self.rows())

    def problems(self, query_id, next_epoch=0):
        return codes(self.sink.check("means", query_id, next_epoch))


def folder_place(path, format):
    root = str(path / "out")
    return Folder(root, format), FolderObserver(root).rows


def delta_place(path):
    root = str(path / "out")
    return Delta(root, compact_every=0), lambda: DeltaObserver(root).rows()


def postgres_place(server, release):
    table = f"over_{uuid.uuid4().hex}"
    sink = postgres_table(table=table, dsn=server.dsn, release=release, create=True)
    return sink, PostgresObserver(server.dsn, table).rows


def kafka_place(broker, release, **config):
    topic = broker.topic(partitions=2, **config)
    sink = KafkaTopic(
        topic=topic, servers=broker.servers, key="name", release=release, ledger=f"l-{topic}"
    )
    observer = KafkaObserver(broker.servers, topic)

    def rows():
        observer.wait_until_decided()
        return observer.rows()

    return sink, rows


KINDS = {
    "jsonl": lambda request, path: folder_place(path, "jsonl"),
    "parquet": lambda request, path: folder_place(path, "parquet"),
    "delta": lambda request, path: delta_place(path),
    "postgres-early": lambda request, _: postgres_place(
        request.getfixturevalue("postgres"), "early"
    ),
    "postgres-commit": lambda request, _: postgres_place(
        request.getfixturevalue("postgres"), "commit"
    ),
    "kafka-early": lambda request, _: kafka_place(request.getfixturevalue("broker"), "early"),
    "kafka-commit": lambda request, _: kafka_place(request.getfixturevalue("broker"), "commit"),
}


def kinds(*names):
    slow = {name: pytest.mark.slow for name in names if "kafka" in name}
    return [pytest.param(name, marks=slow.get(name, ())) for name in names]


@pytest.fixture(params=kinds(*KINDS))
def place(request, tmp_path):
    sink, rows = KINDS[request.param](request, tmp_path)
    yield Place(sink, rows, str(tmp_path / "checkpoints"))
    transactions._writers.clear()
    transactions._ledgers.clear()


@pytest.fixture
def old(place):
    """The claim of a checkpoint that has shown two epochs."""
    claim = place.take(place.claim("old"))
    place.show(claim, 0, 1, 2)
    place.show(claim, 1, 3)
    return claim


@pytest.fixture
def new(place, old):
    """The claim of another, which is refused."""
    assert place.problems(None) == place.problems("new") == ["another-checkpoint"]
    return place.claim("new", generation=2)


@pytest.mark.parametrize("keep", [True, False])
def test_what_was_there_stays_or_goes_and_what_comes_is_there_once(place, new, keep):
    place.take_over(new, keep=keep)
    before = [1, 2, 3] if keep else []
    assert place.seen() == before
    place.show(new, 0, 1, 2)
    place.show(new, 1, 4)
    again = place.take(replace(new, generation=3))
    place.show(again, 1, 4)
    place.show(again, 2, 5)
    assert place.seen() == sorted([*before, 1, 2, 4, 5])
    assert place.sink.rows(again) == 4


@pytest.mark.parametrize("keep", [True, False])
def test_it_is_a_matter_of_one_time(place, new, keep):
    place.take_over(new, keep=keep)
    place.show(new, 0, 7)
    assert place.problems("new", 1) == []
    assert place.problems("new", 0) == ["output-ahead"]
    assert place.problems("old", 2) == place.problems(None) == ["another-checkpoint"]
    assert place.sink.generation("means") == 2


@pytest.mark.parametrize("keep", [True, False])
def test_who_had_it_shows_nothing_more(place, old, new, keep):
    place.take_over(new, keep=keep)
    with pytest.raises(RunError) as error:
        place.show(old, 2, 9)
    assert codes(error.value.problems) == ["fenced"]
    assert 9 not in place.seen()


@pytest.mark.parametrize("place", kinds("jsonl", "delta", "kafka-commit"), indirect=True)
def test_what_was_written_and_not_shown_by_who_had_it_is_not_shown_later(place, old, new):
    written = place.write(old, 2, 9)
    place.take_over(new, keep=True)
    with pytest.raises(RunError):
        place.sink.publish(old, 2, [written])
    assert place.seen() == [1, 2, 3]


@pytest.mark.parametrize("keep", [True, False])
def test_who_had_it_cannot_take_it_back(place, old, new, keep):
    place.take_over(new, keep=keep)
    place.show(new, 0, 7)
    with pytest.raises(RunError) as error:
        place.sink.take(replace(old, generation=9))
    assert codes(error.value.problems) == ["fenced"]
    place.show(new, 1, 8)
    assert place.seen() == ([1, 2, 3] if keep else []) + [7, 8]


def test_a_run_that_slept_takes_nothing_from_the_next_one_of_its_checkpoint(place, new):
    """It saw that the sink is another's, and meanwhile the next run has taken it over."""
    later = replace(new, generation=3)
    place.take_over(later, keep=False)
    place.show(later, 0, 7)
    with pytest.raises(RunError) as error:
        place.take_over(new, keep=False)
    assert codes(error.value.problems) == ["fenced"]
    place.show(later, 1, 8)
    assert place.seen() == [7, 8]


class CutOff(Exception):
    """In place of a kill."""


def cut(*_args, **_settings):
    raise CutOff


CUTS = [
    ("jsonl", Folder, "_begin_behind_others"),
    ("jsonl", Folder, "_sweep"),
    ("delta", DeltaLog, "sweep"),
    ("delta", DeltaTable, "delete"),
    ("kafka-early", kafka_topic, "fence"),
    ("kafka-early", transactions, "_enter_state"),
    ("kafka-early", transactions, "_end_all"),
    ("kafka-early", Topics, "empty"),
]


@pytest.mark.parametrize(
    ("place", "owner", "step"),
    [pytest.param(*cut, marks=pytest.mark.slow if "kafka" in cut[0] else ()) for cut in CUTS],
    indirect=["place"],
)
def test_after_it_was_cut_off_taking_finishes_it_or_it_is_still_anothers(
    place, new, owner, step, monkeypatch
):
    monkeypatch.setattr(owner, step, cut)
    with pytest.raises(CutOff):
        place.take_over(new, keep=False)
    monkeypatch.undo()
    assert place.seen() in ([1, 2, 3], [])
    again = replace(new, generation=3)
    found = place.problems("new")
    assert found in ([], ["another-checkpoint"])
    if found:
        place.sink.take_over(again, keep=False)
    place.take(again)
    place.show(again, 0, 8)
    assert place.seen() == [8]


@pytest.mark.parametrize("place", kinds("kafka-commit"), indirect=True)
def test_when_a_topic_is_emptied_and_the_others_are_not_gone_nobody_goes_on(
    place, old, new, monkeypatch
):
    """Without the flag: the one would not know that its rows are gone, the other may not know."""
    real = kafka_topic.put_out

    def put_out(desk, state):
        if state == "gone":
            raise CutOff
        real(desk, state)

    monkeypatch.setattr(kafka_topic, "put_out", put_out)
    with pytest.raises(CutOff):
        place.sink.take_over(new, keep=False)
    assert place.seen() == []
    assert place.problems("old", 2) == place.problems("new") == ["another-checkpoint"]
    with pytest.raises(RunError, match="fenced"):
        place.sink.take(replace(old, generation=9))


@pytest.mark.slow
def test_a_compacted_topic_cannot_be_emptied(broker, tmp_path):
    sink, rows = kafka_place(broker, "commit", **{"cleanup.policy": "compact"})
    place = Place(sink, rows, str(tmp_path))
    place.show(place.take(place.claim("old")), 0, 1)
    new = place.claim("new", generation=2)
    with pytest.raises(RunError) as error:
        place.sink.take_over(new, keep=False)
    assert codes(error.value.problems) == ["compacted-topic"]
    assert place.problems("old", 1) == []
    assert place.seen() == [1]


@pytest.mark.parametrize("place", kinds("delta"), indirect=True)
def test_a_table_to_which_rows_may_only_be_added_cannot_be_emptied(place, new):
    table = DeltaTable(place.sink.path)
    table.alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(RunError) as error:
        place.sink.take_over(new, keep=False)
    assert codes(error.value.problems) == ["append-only"]
    assert place.problems("old", 2) == []


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_rows_that_were_on_their_way_to_a_table_are_deleted_too(postgres, tmp_path, level):
    """The take-over waits for their transaction, and must see what it has written."""
    sink, rows = postgres_place(postgres, "early")
    default = "-c default_transaction_isolation=" + level.replace(" ", "\\ ")
    strict = replace(sink, dsn=make_conninfo(sink.dsn, options=default))
    place = Place(strict, rows, str(tmp_path))
    place.take(place.claim("old"))
    with psycopg.connect(postgres.dsn) as under_way:
        target = str(sink.name)
        under_way.execute("SELECT FROM cutwater_ledger WHERE target = %s FOR SHARE", (target,))
        under_way.execute(f"INSERT INTO {sink.table} VALUES ('a', 9)")
        over = threading.Thread(
            target=lambda: strict.take_over(place.claim("new", generation=2), keep=False)
        )
        over.start()
        postgres.wait_for_a_lock()
    over.join()
    assert place.seen() == []


class TestFolder:
    """What only folders have: numbers of directories."""

    @pytest.fixture
    def place(self, tmp_path):
        sink, rows = folder_place(tmp_path, "jsonl")
        return Place(sink, rows, str(tmp_path / "checkpoints"))

    def test_its_epochs_follow_those_that_were_there(self, place, new):
        place.take_over(new, keep=True)
        place.show(new, 0, 4)
        assert place.sink.published() == [0, 1, 2]

    def test_an_epoch_that_the_other_shows_meanwhile_is_not_taken_for_its_own(self, place, new):
        place.take_over(new, keep=True)
        foreign = place.sink.root / "epoch=2"
        foreign.mkdir()
        (foreign / "_manifest.json").write_text('{"query_id": "old", "rows": 1}')
        with pytest.raises(RunError) as error:
            place.show(new, 0, 4)
        assert codes(error.value.problems) == ["another-checkpoint"]
        assert "move epoch=2 away" in str(error.value)

    def test_what_the_other_is_publishing_meanwhile_does_not_appear(
        self, place, old, new, monkeypatch
    ):
        """It has seen that the folder is its own, and has yet to rename the directory."""

        def overtaken(path, value):
            monkeypatch.undo()
            place.take_over(new, keep=True)
            write_json(path, value)

        monkeypatch.setattr(folder, "write_json", overtaken)
        with pytest.raises(FencedError):
            place.show(old, 2, 9)
        place.show(new, 0, 4)
        assert place.seen() == [1, 2, 3, 4]

    def test_what_is_put_there_later_stays(self, place, new):
        place.take_over(new, keep=False)
        (place.sink.root / "epoch=0").mkdir()
        (place.sink.root / "epoch=0" / "part-00000.jsonl").write_text('{"value": 1}')
        place.take(replace(new, generation=3))
        assert place.seen() == [1]

    def test_a_folder_that_cannot_be_written_to_is_said(self, place, new, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(folder, "write_json", full)
        with pytest.raises(RunError) as error:
            place.sink.take_over(new, keep=True)
        assert codes(error.value.problems) == ["unwritable-output"]

    def test_another_format_is_refused_all_the_same(self, place, old):
        other = Folder(place.sink.path, "parquet")
        found = codes(other.check("means", "new", 0))
        assert found == ["another-checkpoint", "another-format"]
