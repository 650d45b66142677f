"""A sink that belongs to another checkpoint, taken over: for every kind of sink the same laws."""

import contextlib
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from sink_rows import codes, lane

from cutwater.errors import RunError
from cutwater.observers.delta import DeltaObserver
from cutwater.observers.folder import FolderObserver
from cutwater.observers.kafka import KafkaObserver
from cutwater.observers.postgres import PostgresObserver
from cutwater.spark.kafka import transactions
from cutwater.spark.postgres import postgres_table
from cutwater.spark.sinks import Claim, Delta, Folder, Lane, Sink
from cutwater.spark.sinks.delta_log import DeltaLog
from cutwater.spark.sinks.kafka_topic import KafkaTopic


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


def kafka_place(broker, release):
    topic = broker.topic(partitions=2)
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
    place.sink.take_over(new, keep=keep)
    place.take(new)
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
    place.sink.take_over(new, keep=keep)
    place.take(new)
    place.show(new, 0, 7)
    assert place.problems("new", 1) == []
    assert place.problems("new", 0) == ["output-ahead"]
    assert place.problems("old", 2) == place.problems(None) == ["another-checkpoint"]
    assert place.sink.generation("means") == 2


@pytest.mark.parametrize("keep", [True, False])
def test_who_had_it_shows_nothing_more(place, old, new, keep):
    place.sink.take_over(new, keep=keep)
    place.take(new)
    with pytest.raises(RunError) as error:
        place.show(old, 2, 9)
    assert codes(error.value.problems) == ["fenced"]
    assert 9 not in place.seen()


@pytest.mark.parametrize("place", kinds("jsonl", "delta", "kafka-commit"), indirect=True)
def test_what_was_written_and_not_shown_by_who_had_it_is_not_shown_later(place, old, new):
    written = place.write(old, 2, 9)
    place.sink.take_over(new, keep=True)
    place.take(new)
    with pytest.raises(RunError):
        place.sink.publish(old, 2, [written])
    assert place.seen() == [1, 2, 3]


def test_after_it_was_cut_off_it_has_not_happened_or_taking_finishes_it(place, new, monkeypatch):
    """Cut off before the last thing that it does: what each sink does last is another thing."""

    class CutOff(Exception):
        pass

    def cut(*args, **kwargs):
        raise CutOff

    monkeypatch.setattr(transactions, "_write_notes", cut)
    monkeypatch.setattr(DeltaLog, "sweep", cut)
    with contextlib.suppress(CutOff):
        place.sink.take_over(new, keep=False)
    monkeypatch.undo()
    if place.problems("new") == ["another-checkpoint"]:
        place.sink.take_over(new, keep=False)
    place.take(new)
    place.show(new, 0, 8)
    assert place.seen() == [8]


class TestFolder:
    """What only folders have: numbers of directories."""

    @pytest.fixture
    def place(self, tmp_path):
        sink, rows = folder_place(tmp_path, "jsonl")
        return Place(sink, rows, str(tmp_path / "checkpoints"))

    def test_its_epochs_follow_those_that_were_there(self, place, new):
        place.sink.take_over(new, keep=True)
        place.take(new)
        place.show(new, 0, 4)
        assert place.sink.published() == [0, 1, 2]

    def test_an_epoch_that_the_other_shows_meanwhile_is_not_taken_for_its_own(self, place, new):
        place.sink.take_over(new, keep=True)
        place.take(new)
        foreign = place.sink.root / "epoch=2"
        foreign.mkdir()
        (foreign / "_manifest.json").write_text('{"query_id": "old", "rows": 1}')
        with pytest.raises(RunError) as error:
            place.show(new, 0, 4)
        assert codes(error.value.problems) == ["another-checkpoint"]
        assert "move epoch=2 away" in str(error.value)

    def test_another_format_is_refused_all_the_same(self, place, old):
        other = Folder(place.sink.path, "parquet")
        found = codes(other.check("means", "new", 0))
        assert found == ["another-checkpoint", "another-format"]
