"""The Delta sink: each epoch is one version, once, from one owner."""

import contextlib
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from support.connectors.delta_means import Mean, files, seen, stage, take
from support.connectors.sink_rows import bucket, claim, codes

from cutwater.errors import CutwaterError, RefusedError, RunError
from cutwater.observers.delta import DeltaObserver
from cutwater.spark.connectors.delta import ledger as delta_log
from cutwater.spark.connectors.delta.sink import Delta


@pytest.fixture
def table(tmp_path):
    return Delta(str(tmp_path / "table"), compact_every=0)


def test_an_epoch_is_seen_when_it_is_published_and_not_before(table):
    who = take(table)
    parts = [stage(table, 0, 2.0, first=5), stage(table, 0, 1.0, 1.5)]
    assert seen(table) == []
    table.publish(who, 0, parts)
    assert sorted(seen(table)) == [1.0, 1.5, 2.0]
    assert table.row_count(who) == 3
    assert DeltaObserver(table.path).epochs() == {0: 3}


def test_rows_of_several_buckets_are_in_order(table):
    who = take(table)
    buckets = [
        bucket(Mean, [Mean("a", 0.0), Mean("a", 1.0)], label=1, first=3),
        bucket(Mean, [Mean("b", 2.0)], label=2, first=1),
    ]
    table.publish(who, 0, [table.write(who, 0, Mean, buckets)])
    assert seen(table) == [2.0, 0.0, 1.0]


def test_publishing_again_changes_nothing(table):
    who = take(table)
    part = stage(table, 0, 1.0)
    table.publish(who, 0, [part])
    version = DeltaTable(table.path).version()
    table.publish(who, 0, [part])  # the driver died before Spark noted that it was published
    table.publish(who, 0, [stage(table, 0, 9.0)])  # and the tasks ran again
    assert DeltaTable(table.path).version() == version
    assert seen(table) == [1.0]
    assert table.row_count(who) == 1


def test_an_epoch_without_rows_leaves_a_gap(table):
    who = take(table)
    version = DeltaTable(table.path).version()
    table.publish(who, 0, [])
    assert DeltaTable(table.path).version() == version
    table.publish(who, 7, [stage(table, 7, 1.0)])
    assert DeltaObserver(table.path).epochs() == {7: 1}
    assert table.check("means", "q", 8) == []


@pytest.mark.parametrize(("generation", "query_id"), [(1, "q"), (3, "q"), (2, "other")])
def test_only_the_newest_generation_publishes(table, generation, query_id):
    take(table, 1)
    part = stage(table, 0, 1.0)
    who = take(table, 2)
    with pytest.raises(RunError, match="fenced"):
        table.publish(claim(generation, query_id), 0, [part])
    assert seen(table) == []
    table.publish(who, 0, [stage(table, 0, 2.0, generation=2)])
    assert seen(table) == [2.0]


def overtake(monkeypatch, happens):
    """Let something happen between a look at the table and the commit that follows it."""
    real = delta_log._add

    def overtaken(*args):
        monkeypatch.setattr(delta_log, "_add", real)
        happens()
        real(*args)

    monkeypatch.setattr(delta_log, "_add", overtaken)


def test_a_zombie_that_has_looked_and_then_sleeps_is_fenced(table, monkeypatch):
    """The new run takes the table after the zombie's look and before its commit."""
    zombie = take(table, 1)
    part = stage(table, 0, 1.0)

    def the_new_run():
        who = take(table, 2)
        table.publish(who, 0, [stage(table, 0, 2.0, generation=2)])

    overtake(monkeypatch, the_new_run)
    with pytest.raises(RunError, match="generation 2 has taken over from generation 1"):
        table.publish(zombie, 0, [part])
    assert seen(table) == [2.0]


def test_a_zombie_is_fenced_by_the_taking_alone(table, monkeypatch):
    zombie = take(table, 1)
    part = stage(table, 0, 1.0)
    overtake(monkeypatch, lambda: table.claim(claim(2)))
    with pytest.raises(RunError, match="fenced"):
        table.publish(zombie, 0, [part])
    assert seen(table) == []


def test_of_two_that_publish_the_same_epoch_one_is_seen(table, monkeypatch):
    who = take(table)
    late, early = stage(table, 0, 1.0), stage(table, 0, 2.0)
    overtake(monkeypatch, lambda: table.publish(who, 0, [early]))
    table.publish(who, 0, [late])
    assert seen(table) == [2.0]
    assert table.row_count(who) == 1


def test_many_that_publish_the_same_epochs_at_once_show_each_once(table):
    """Three drivers that share a generation, which nothing but the table itself keeps apart."""
    who = take(table)

    def publish_all(driver):
        for epoch in range(8):
            table.publish(who, epoch, [stage(table, epoch, epoch + driver / 10)])

    with ThreadPoolExecutor(3) as drivers:
        list(drivers.map(publish_all, range(3)))
    assert Counter(map(int, seen(table))) == Counter(range(8))
    assert table.row_count(who) == 8


def test_a_take_over_in_full_run_loses_and_doubles_nothing(table):
    """A zombie publishes as fast as it can while a new run takes the table and does the same."""
    zombie = take(table, 1)

    def publish_all(who):
        for epoch in range(12):
            try:
                part = stage(table, epoch, float(epoch), generation=who.generation)
                table.publish(who, epoch, [part])
            except RunError as error:
                return codes(error.problems)
        return []

    with ThreadPoolExecutor(2) as drivers:
        old = drivers.submit(publish_all, zombie)
        new = drivers.submit(lambda: publish_all(take(table, 2)))
        assert new.result() == []
        assert old.result() in ([], ["fenced"])
    assert Counter(seen(table)) == Counter(map(float, range(12)))
    assert table.row_count(zombie) == 12


def test_what_others_add_at_the_same_time_stays(table, monkeypatch):
    who = take(table)
    part = stage(table, 0, 1.0)
    overtake(
        monkeypatch,
        lambda: write_deltalake(
            table.path, pa.table({"sensor": ["x"], "value": [5.0]}), mode="append"
        ),
    )
    table.publish(who, 0, [part])
    assert sorted(seen(table)) == [1.0, 5.0]
    assert table.row_count(who) == 1


def test_a_change_of_the_table_by_others_is_only_tried_again(table, monkeypatch):
    who = take(table)
    part = stage(table, 0, 1.0)

    def comment():
        DeltaTable(table.path).alter.set_table_properties({"delta.checkpointInterval": "7"})

    overtake(monkeypatch, comment)
    table.publish(who, 0, [part])
    assert seen(table) == [1.0]
    assert table.generation("means") == 1


def test_an_older_generation_cannot_take_the_table_back(table):
    take(table, 2)
    with pytest.raises(RunError, match="generation 1 cannot claim"):
        table.claim(claim(1))
    assert table.generation("means") == 2


def test_taking_the_table_sweeps_what_was_never_committed(table):
    who = take(table, 1)
    table.publish(who, 0, [stage(table, 0, 1.0)])
    committed = files(table)
    stage(table, 1, 2.0)
    foreign = Path(table.path) / "notes.parquet"
    foreign.write_bytes(b"mine")
    take(table, 2)
    assert files(table) == {*committed, "notes.parquet"}
    assert seen(table) == [1.0]


def test_sweeping_before_an_epoch_leaves_what_was_written_for_it(table):
    who = take(table, 1)
    stage(table, 0, 1.0)
    left = stage(table, 1, 2.0)
    table._log(who.sink).sweep(who, before_epoch=1)
    assert len(files(table)) == 1
    table.publish(who, 1, [left])
    assert seen(table) == [2.0]


def test_sweeping_leaves_what_readers_of_an_older_version_need(table):
    who = take(table, 1)
    for epoch in (0, 1):
        table.publish(who, epoch, [stage(table, epoch, float(epoch))])
    older = DeltaTable(table.path)
    DeltaTable(table.path).optimize.compact()
    take(table, 2)
    assert older.to_pyarrow_table().num_rows == 2


def test_a_zombie_whose_files_were_swept_publishes_nothing(table):
    zombie = take(table, 1)
    part = stage(table, 0, 1.0)
    take(table, 2)
    assert files(table) == set()
    with pytest.raises(RunError, match="fenced"):
        table.publish(zombie, 0, [part])
    assert seen(table) == []


def test_a_new_table_is_fine_and_a_look_changes_nothing(table, tmp_path):
    assert table.check("means", None, 0) == []
    assert table.schema_problems("means", Mean) == []
    assert table.generation("means") == 0
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_another_checkpoint_is_refused(table):
    who = take(table)
    table.publish(who, 0, [stage(table, 0, 1.0)])
    for other in (None, "other"):
        (problem,) = table.check("means", other, 0)
        assert problem.code == "another-checkpoint"
        assert "has 1 row of it" in problem.message
    assert table.check("means", "q", 1) == []


def test_a_table_whose_ledger_is_emptied_can_be_taken_by_another_checkpoint(table):
    table.publish(take(table), 0, [stage(table, 0, 1.0)])
    DeltaTable(table.path).alter.set_table_properties(
        {"cutwater.ledger": ""}, raise_if_not_exists=False
    )
    assert table.check("means", None, 0) == []
    who = take(table, query_id="other")
    part = table.write(who, 0, Mean, [bucket(Mean, [Mean("s", 2.0)])])
    table.publish(who, 0, [part])
    assert sorted(seen(table)) == [1.0, 2.0]
    assert table.row_count(who) == 1


def test_a_table_that_was_restored_to_an_older_version_is_behind_and_no_longer_ahead(table):
    """Application transactions do not go back with the rows; the next run lets them."""
    who = take(table)
    for epoch in (0, 1):
        table.publish(who, epoch, [stage(table, epoch, float(epoch))])
    delta = DeltaTable(table.path)
    delta.restore(delta.version() - 1)
    assert seen(table) == [0.0]
    assert table.newest_epoch("means", "q") == 0
    assert table.check("means", "q", 1) == []
    assert codes(table.check("means", "q", 0)) == ["output-ahead"]
    who = take(table, 2)
    assert table.released(who, 1) is None
    table.publish(who, 1, [stage(table, 1, 1.0, generation=2)])
    assert sorted(seen(table)) == [0.0, 1.0]


@pytest.mark.parametrize("back", [1, 2])
def test_a_table_that_is_restored_during_a_run_is_refused_at_the_next_epoch(table, back):
    who = take(table)
    for epoch in (0, 1):
        table.publish(who, epoch, [stage(table, epoch, float(epoch))])
    delta = DeltaTable(table.path)
    delta.restore(delta.version() - back)
    with pytest.raises(RefusedError, match="RESTORE has removed the others") as caught:
        table.publish(who, 2, [stage(table, 2, 2.0)])
    assert codes(caught.value.problems) == ["output-behind"]
    assert sorted(seen(table)) == [0.0, 1.0][: 2 - back]


def test_other_writers_of_a_table_do_not_look_like_a_restore(table):
    who = take(table)
    table.publish(who, 0, [stage(table, 0, 0.0)])
    for _ in range(10):
        DeltaTable(table.path).alter.set_table_properties(
            {"made.by": "others"}, raise_if_not_exists=False
        )
    table.publish(who, 1, [stage(table, 1, 1.0)])
    assert sorted(seen(table)) == [0.0, 1.0]


def test_a_table_of_another_sink_is_refused(table):
    take(table)
    assert codes(table.check("alarms", "q", 0)) == ["another-sink"]


def test_a_table_that_is_ahead_of_its_checkpoint_is_refused(table):
    who = take(table)
    table.publish(who, 3, [stage(table, 3, 1.0)])
    assert codes(table.check("means", "q", 3)) == ["output-ahead"]


def test_a_ledger_of_another_version_is_refused(table):
    take(table)
    DeltaTable(table.path).alter.set_table_properties(
        {"cutwater.ledger": json.dumps({"format": 99})}, raise_if_not_exists=False
    )
    assert codes(table.check("means", "q", 0)) == ["ledger-format"]


def test_a_table_that_others_made_and_filled_is_taken_as_it_is(table):
    write_deltalake(table.path, pa.table({"sensor": ["x"], "value": [5.0], "more": [1]}))
    assert table.check("means", None, 0) == []
    assert table.schema_problems("means", Mean) == []
    who = take(table)
    table.publish(who, 0, [stage(table, 0, 1.0)])
    assert Counter(seen(table)) == Counter([1.0, 5.0])
    assert table.row_count(who) == 1


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"sensor": ["x"]}, ["missing-column"]),
        ({"sensor": [1], "value": ["x"]}, ["column-of-another-type"] * 2),
        ({"sensor": [["x"]], "other": [1]}, ["column-of-another-type", "missing-column"]),
    ],
)
def test_columns_that_do_not_fit(table, columns, expected):
    write_deltalake(table.path, pa.table(columns))
    assert codes(table.schema_problems("means", Mean)) == expected


def test_a_column_that_must_not_be_empty_and_is_no_field(table):
    schema = pa.schema(
        [
            pa.field("sensor", pa.string()),
            pa.field("value", pa.float64()),
            pa.field("id", pa.int64(), nullable=False),
        ]
    )
    DeltaTable.create(table.path, schema)
    assert codes(table.schema_problems("means", Mean)) == ["column-without-a-field"]


def test_tables_that_ask_more_of_their_writers(table):
    rows = pa.table({"sensor": ["x"], "value": [5.0]})
    write_deltalake(table.path, rows, partition_by=["sensor"])
    assert codes(table.check("means", None, 0)) == ["partitioned-table"]
    write_deltalake(table.path + "2", rows)
    DeltaTable(table.path + "2").alter.add_constraint({"positive": "value > 0"})
    (problem,) = Delta(table.path + "2").check("means", None, 0)
    assert problem.code == "table-feature"
    assert "delta.constraints.positive" in problem.message


def test_a_folder_with_other_files_is_refused(table):
    Path(table.path).mkdir()
    (Path(table.path) / "notes.txt").write_text("mine")
    assert codes(table.check("means", None, 0)) == ["foreign-output"]


def test_a_table_whose_making_was_cut_off_is_made_again(table):
    """The log is a folder and a file of another name before it has its first version."""
    log = Path(table.path) / "_delta_log"
    log.mkdir(parents=True)
    assert table.check("means", None, 0) == []
    (log / f"{0:020}.json#1").write_text("half")
    assert table.check("means", None, 0) == []
    who = take(table)
    table.publish(who, 0, [stage(table, 0, 1.0)])
    assert seen(table) == [1.0]


def test_files_beside_a_log_without_a_version_are_other_files(table):
    (Path(table.path) / "_delta_log").mkdir(parents=True)
    (Path(table.path) / "rows.parquet").write_bytes(b"mine")
    assert codes(table.check("means", None, 0)) == ["foreign-output"]


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "file").write_text("mine")
    table = Delta(str(tmp_path / "file"))
    assert codes(table.check("means", None, 0)) == ["unwritable-output"]
    with pytest.raises(RunError, match="unwritable-output"):
        table.prepare("means", Mean)


def test_a_table_that_is_gone_is_a_sentence(table):
    with pytest.raises(RunError, match="delta-failed") as error:
        table.claim(claim(1))
    assert "<unknown>" not in str(error.value)


def test_settings_that_cannot_work():
    def refusals(**settings):
        return codes(Delta("s3://bucket/table", **settings).problems("means", Mean))

    assert refusals() == []
    assert refusals(compact_every=-1, keep_hours=-1) == ["negative-setting"] * 2
    assert refusals(storage_options={"AWS_REGION": "here"}) == []
    assert refusals(storage_options={"aws_secret_access_key": "hush"}) == ["secret-in-a-setting"]


@pytest.mark.parametrize("path", ["s3:/bucket/t", "ftp://host/t", "file:///t", "s3n://b/t"])
def test_an_address_that_is_no_store_is_refused_and_becomes_no_folder(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    table = Delta(path)
    assert not table.is_local
    assert codes(table.problems("means", Mean)) == ["unknown-store"]
    with contextlib.suppress(CutwaterError):
        table.check("means", None, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_store_has_one_place_however_it_is_written():
    assert Delta("s3://bucket/t/").location == Delta("s3://bucket/t").location
    assert not Delta("s3://bucket/t").is_local


def test_what_is_created_is_its_owners_alone(table):
    who = take(table)
    table.publish(who, 0, [stage(table, 0, 1.0)])
    assert Path(table.path).stat().st_mode & 0o077 == 0
    assert all((Path(table.path) / name).stat().st_mode & 0o077 == 0 for name in files(table))
