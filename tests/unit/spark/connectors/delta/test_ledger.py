"""The Delta sink's upkeep: files stay few, and what readers need survives every crash."""

import os
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from support.connectors.delta_means import Mean, seen, stage, take
from support.connectors.sink_rows import codes

from cutwater.observers.delta import DeltaObserver
from cutwater.spark.connectors.delta import files as delta_files
from cutwater.spark.connectors.delta.ledger import DeltaLog
from cutwater.spark.connectors.delta.sink import Delta


def compacting(tmp_path, every=5):
    return Delta(str(tmp_path / "table"), compact_every=every, keep_hours=0)


def test_files_are_bounded_over_many_epochs(tmp_path):
    table = compacting(tmp_path, every=10)
    who = take(table)
    most = 0
    for epoch in range(200):
        table.publish(who, epoch, [stage(table, epoch, float(epoch))])
        stage(table, epoch, -1.0)  # another attempt, of which nobody hears
        most = max(most, sum(len(names) for _, _, names in os.walk(table.path)))
    assert most < 60
    assert Counter(seen(table)) == Counter(map(float, range(200)))
    assert table.row_count(who) == 200
    assert table.check("means", "q", 200) == []
    assert codes(table.check("means", "q", 199)) == ["output-ahead"]


def test_a_reader_of_the_version_before_a_compaction_still_reads_it(tmp_path):
    table = compacting(tmp_path)
    who = take(table)
    for epoch in range(5):
        table.publish(who, epoch, [stage(table, epoch, float(epoch))])
    reader = DeltaTable(table.path)
    table.publish(who, 5, [stage(table, 5, 5.0)])
    assert DeltaObserver(table.path).files() == 1
    assert reader.to_pyarrow_table().num_rows == 5


class Crash(BaseException):
    """The process is gone."""


POINTS = ("vacuum", "sweep", "optimize", "create_checkpoint", "cleanup_metadata")


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_in_compaction_is_harmless(tmp_path, monkeypatch, point, is_done):
    """Before or after each of its parts; the epoch is then published again."""
    table = compacting(tmp_path)
    who = take(table)
    for epoch in range(10):
        table.publish(who, epoch, [stage(table, epoch, float(epoch))])
    owner = DeltaLog if point == "sweep" else DeltaTable
    real = getattr(owner, point)

    def dying(self, *args, **kwargs):
        if is_done:
            real.fget(self).compact() if isinstance(real, property) else real(self, *args, **kwargs)
        raise Crash

    part = stage(table, 10, 10.0)
    with monkeypatch.context() as patch:
        patch.setattr(owner, point, property(dying) if isinstance(real, property) else dying)
        with pytest.raises(Crash):
            table.publish(who, 10, [part])
    who = take(table, 2)
    table.publish(who, 10, [stage(table, 10, 10.0, generation=2)])
    for epoch in range(11, 20):
        table.publish(who, epoch, [stage(table, epoch, float(epoch), generation=2)])
    assert Counter(seen(table)) == Counter(map(float, range(20)))
    assert table.row_count(who) == 20


def test_an_epoch_is_not_lost_by_a_compaction_that_fails(tmp_path, monkeypatch, caplog):
    table = compacting(tmp_path, every=1)
    who = take(table)
    table.publish(who, 0, [stage(table, 0, 0.0)])

    def failing(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DeltaLog, "keep_up", failing)
    table.publish(who, 1, [stage(table, 1, 1.0)])
    assert sorted(seen(table)) == [0.0, 1.0]
    assert "was not compacted: [Errno 28] No space left on device" in caplog.text


def test_a_zombie_that_wakes_in_its_upkeep_deletes_nothing_that_is_read(tmp_path, monkeypatch):
    """Its view of the table is old: what the new run has committed is in no version of it."""
    table = compacting(tmp_path)
    zombie = take(table, 1)
    for epoch in range(4):
        table.publish(zombie, epoch, [stage(table, epoch, float(epoch))])
    old_view = DeltaTable(table.path)
    living = Delta(table.path, compact_every=0)
    who = take(living, 2)
    for epoch in range(4, 14):
        living.publish(who, epoch, [stage(living, epoch, float(epoch), generation=2)])
    monkeypatch.setattr(DeltaLog, "_table", lambda self: old_view)
    old_view.vacuum(0, dry_run=False, enforce_retention_duration=False)
    DeltaLog(table, "means").sweep(zombie, before_epoch=4)
    monkeypatch.undo()
    assert Counter(seen(table)) == Counter(map(float, range(14)))


@pytest.fixture
def synced(monkeypatch):
    """The names of the files that were made to survive a crash of the machine."""
    names, real = set(), delta_files.sync_file

    def noting(file):
        real(file)
        names.add(Path(str(file.name)).name)

    monkeypatch.setattr(delta_files, "sync_file", noting)
    return names


def log_of(table):
    return {path.name for path in (Path(table.path) / "_delta_log").iterdir()}


def test_each_entry_of_the_log_is_durable_before_anything_follows_it(tmp_path, synced):
    table = compacting(tmp_path, every=0)
    table.prepare("means", Mean)
    assert synced == log_of(table) == {f"{0:020}.json"}
    who = take(table)
    assert synced == log_of(table) == {f"{version:020}.json" for version in (0, 1)}
    table.publish(who, 0, [stage(table, 0, 1.0)])
    assert log_of(table) <= synced


def test_what_a_killed_run_left_in_the_log_is_made_durable(tmp_path, synced, monkeypatch):
    table = compacting(tmp_path, every=0)
    with monkeypatch.context() as patch:
        patch.setattr(delta_files.FolderFiles, "sync_log", lambda *_: None)
        table.publish(take(table), 0, [stage(table, 0, 1.0)])
    take(table, 2)
    assert {f"{version:020}.json" for version in range(4)} <= synced


def test_a_compaction_is_durable_before_older_entries_are_deleted(tmp_path, synced, monkeypatch):
    table = compacting(tmp_path, every=3)
    who = take(table)
    real, left = DeltaTable.cleanup_metadata, []

    def looking(self):
        left.append(log_of(table) - synced)
        real(self)

    monkeypatch.setattr(DeltaTable, "cleanup_metadata", looking)
    for epoch in range(10):
        table.publish(who, epoch, [stage(table, epoch, float(epoch))])
    assert left == [set()] * 3


def test_what_a_killed_run_left_is_made_durable_when_the_oldest_entries_are_gone(
    tmp_path, synced, monkeypatch
):
    table = compacting(tmp_path, every=3)
    who = take(table)
    with monkeypatch.context() as patch:
        patch.setattr(delta_files.FolderFiles, "sync_log", lambda *_: None)
        for epoch in range(8):
            table.publish(who, epoch, [stage(table, epoch, float(epoch))])
    assert f"{0:020}.json" not in log_of(table)
    synced.clear()
    table.prepare("means", Mean)
    newest = max(log_of(table) - {"_last_checkpoint"})
    assert {newest, "_last_checkpoint"} <= synced
    assert any(name.endswith(".checkpoint.parquet") for name in synced)


def test_a_compaction_that_fails_leaves_durable_entries(tmp_path, synced, monkeypatch):
    table = compacting(tmp_path, every=3)
    who = take(table)

    def failing(_self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DeltaTable, "create_checkpoint", failing)
    for epoch in range(7):
        table.publish(who, epoch, [stage(table, epoch, float(epoch))])
    assert len(log_of(table)) > 2 + 7
    assert log_of(table) <= synced
