"""A sink that belongs to another checkpoint, taken over: for every kind of sink the same laws."""

import threading
from dataclasses import replace

import psycopg
import pytest
from deltalake import DeltaTable
from psycopg.conninfo import make_conninfo
from support.connectors.sink_places import (
    KINDS,
    Place,
    folder_place,
    kafka_place,
    kinds,
    postgres_place,
)
from support.connectors.sink_rows import codes

from cutwater.errors import FencedError, RunError
from cutwater.spark.connectors.delta.ledger import DeltaLog
from cutwater.spark.connectors.files import sink as folder
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.connectors.kafka import sink as kafka_topic
from cutwater.spark.connectors.kafka import transactions
from cutwater.spark.connectors.kafka.checks import Topics
from cutwater.spark.storage.durable import write_json


@pytest.fixture(params=kinds(*KINDS))
def place(request, tmp_path):
    sink, rows = KINDS[request.param](request, tmp_path)
    yield Place(sink, rows, str(tmp_path / "checkpoints"))
    transactions._writers.clear()
    transactions._ledgers.clear()


@pytest.fixture
def old(place):
    """The claim of a checkpoint that has shown two epochs."""
    claim = place.acquire(place.claim("old"))
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
    again = place.acquire(replace(new, generation=3))
    place.show(again, 1, 4)
    place.show(again, 2, 5)
    assert place.seen() == sorted([*before, 1, 2, 4, 5])
    assert place.sink.row_count(again) == 4


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
        place.sink.claim(replace(old, generation=9))
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
    place.acquire(again)
    place.show(again, 0, 8)
    assert place.seen() == [8]


@pytest.mark.parametrize("place", kinds("kafka-commit"), indirect=True)
def test_when_a_topic_is_emptied_and_the_others_are_not_gone_nobody_goes_on(
    place, old, new, monkeypatch
):
    """Without the flag: the one would not know that its rows are gone, the other may not know."""
    real = kafka_topic.revoke

    def revoke(scope, state):
        if state == "gone":
            raise CutOff
        real(scope, state)

    monkeypatch.setattr(kafka_topic, "revoke", revoke)
    with pytest.raises(CutOff):
        place.sink.take_over(new, keep=False)
    assert place.seen() == []
    assert place.problems("old", 2) == place.problems("new") == ["another-checkpoint"]
    with pytest.raises(RunError, match="fenced"):
        place.sink.claim(replace(old, generation=9))


@pytest.mark.slow
def test_a_compacted_topic_cannot_be_emptied(broker, tmp_path):
    sink, rows = kafka_place(broker, "commit", **{"cleanup.policy": "compact"})
    place = Place(sink, rows, str(tmp_path))
    place.show(place.acquire(place.claim("old")), 0, 1)
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
    place.acquire(place.claim("old"))
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

    def test_an_epoch_that_the_other_shows_meanwhile_is_not_mistaken_for_its_own(self, place, new):
        place.take_over(new, keep=True)
        foreign = place.sink.root / "epoch=2"
        foreign.mkdir()
        write_json(foreign / "_manifest.json", {"query_id": "old", "rows": 1})
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
        place.acquire(replace(new, generation=3))
        assert place.seen() == [1]

    def test_a_folder_that_cannot_be_written_to_is_reported(self, place, new, monkeypatch):
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


def test_an_epoch_has_shown_something_from_when_a_reader_may_see_it(place):
    one = place.acquire(place.claim("one"))
    assert place.sink.released(one, 0) is None
    receipt = place.write(one, 0, 1)
    assert (place.sink.released(one, 0) is not None) == (place.sink.release == "early")
    place.sink.publish(one, 0, [receipt])
    again = place.acquire(place.claim("one", 2))
    assert place.sink.released(again, 0) is not None
    assert place.sink.released(again, 1) is None


def test_what_was_staged_and_swept_was_not_shown(place):
    one = place.acquire(place.claim("one"))
    place.write(one, 0, 1)
    shown = place.sink.released(place.acquire(place.claim("one", 2)), 0)
    assert (shown is not None) == (place.sink.release == "early")
