"""Snapshots of a real-time run: old ones go, one that fails is seen and made good later."""

import errno
import os
import random
from pathlib import Path

import pytest
from support.spark.toy_checkpoints import Checkpointed
from support.spark.toy_realtime import MemorySink

from cutwater.spark import read_state
from cutwater.spark.connectors.base.side_outputs import late_events_sink
from cutwater.spark.realtime import memory_store, snapshots
from cutwater.spark.realtime.memory_store import LevelMemory
from cutwater.spark.realtime.opening import newest_opening
from cutwater.spark.realtime.reports import TickReports
from cutwater.spark.realtime.side_outputs import store_side_outputs
from cutwater.spark.realtime.snapshots import Snapshots, TaskSnapshots


def fill(memory, label, number, data):
    memory._buckets.setdefault(label, memory_store.BucketMemory({})).updateValue((number,), (data,))


def test_loading_is_what_was_in_memory_and_old_files_go(tmp_path):
    """load(store(s1); …; store(sn)) = sn, with a bounded number of files."""
    rng, memory = random.Random(1), LevelMemory({})
    task, most = TaskSnapshots(tmp_path / "0.0"), 0
    for tick in range(1, 400):
        for _ in range(rng.randrange(3)):
            fill(memory, rng.randrange(2), rng.randrange(20), rng.randbytes(rng.randrange(1, 9)))
        changes, is_full = memory.snapshot()
        task.store(tick, changes, is_full=is_full)
        task.drop_before(tick)
        most = max(most, len(list(task.folder.iterdir())))
    wanted = {label: dict(bucket._entries) for label, bucket in memory._buckets.items()}
    assert task.load() == wanted
    assert most <= memory_store.MOST_DELTAS + 2


def test_what_a_lagging_task_needs_stays(tmp_path):
    """Old files go only up to the newest tick that every task has."""
    task = TaskSnapshots(tmp_path / "0.0")
    task.store(1, {0: {0: b"a"}}, is_full=True)
    task.store(2, {0: {1: b"b"}}, is_full=False)
    task.store(3, {0: {0: b"a", 1: b"c"}}, is_full=True)
    task.drop_before(2)
    assert task.load(2) == {0: {0: b"a", 1: b"b"}}
    task.drop_before(3)
    assert [each.tick for each in task.stored()] == [3]


@pytest.fixture
def full_disk(monkeypatch):
    """While it has numbers left: what is stored fails."""
    store, failing = TaskSnapshots.store, []

    def stored(task, tick, changes, *, is_full):
        if failing and failing.pop():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        store(task, tick, changes, is_full=is_full)

    monkeypatch.setattr(TaskSnapshots, "store", stored)
    return failing


@pytest.mark.parametrize("seed", range(3))
def test_a_snapshot_that_fails_holds_no_row_back_and_is_made_good(tmp_path, full_disk, seed):
    sales = Checkpointed(tmp_path, partitions=2, snapshot_ticks=2)
    sales.toy.random.seed(seed)
    for number in range(8):
        sales.sell(number, [("a", 1, number), ("b", 2, number), ("c", 1, 0)])
    full_disk += [True] * 6
    sales.run()
    assert full_disk == []
    state = {row["key"]: row["state"] for row in read_state(sales.checkpoint.root, "sold").rows}
    late = sales.toy.job.sinks[late_events_sink("sales")]
    kept = late.row_count(sales.toy.job.claim_of(late_events_sink("sales")))
    assert state == {"a": 8, "b": 16, "c": 8 - kept}
    assert kept > 0
    shown = MemorySink.shown_rows[sales.toy.job.sinks["out"].name]
    assert sum(map(len, shown.values())) == 24 - kept


def test_a_failure_and_an_old_snapshot_are_reported(tmp_path, full_disk):
    sales = Checkpointed(tmp_path, partitions=1, snapshot_ticks=2)
    sales.sell(0, [("a", 1, number) for number in range(3)])
    told, clock = [], [1000.0]
    full_disk += [True] * 2
    sales.run(kill_at=200)
    opening = newest_opening(sales.checkpoint.root)
    reports = TickReports(sales.toy.job, opening, told.append, lambda: clock[0])
    clock[0] += 60.0
    reports.report()
    snapshot = told[-1].snapshot
    assert snapshot.failures == 2
    assert snapshot.is_late
    assert snapshot.interval_seconds == 0.02


def test_late_events_are_counted_as_they_come(tmp_path):
    sales = Checkpointed(tmp_path, partitions=1)
    sales.sell(0, [("a", 1, 9)])
    sales.run()
    sales.sell(1, [("a", 1, 0), ("b", 1, 1)])
    told = []
    sales.run()
    reports = TickReports(sales.toy.job, newest_opening(sales.checkpoint.root), told.append)
    reports.report()
    assert (told[-1].late, told[-1].rows) == (2, {"out": 0})


def test_files_are_copied_while_their_task_replaces_them(tmp_path, monkeypatch):
    """A zombie renames what did not change, and removes what a full snapshot makes needless."""
    mine = Snapshots(tmp_path / "old", 1, 1)
    task = mine.of(0, 0)
    task.store(2, {1: {1: b"a"}}, is_full=True)
    task.store(4, {1: {2: b"b"}}, is_full=False)
    meanwhile = iter(
        [
            lambda: task.store(6, {}, is_full=False),
            lambda: (task.store(8, {1: {1: b"c"}}, is_full=True), task.drop_before(8)),
        ]
    )
    link = Path.hardlink_to

    def linked(path, target):
        next(meanwhile, lambda: None)()
        link(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "hardlink_to", linked)
        copy = mine.copied_to(tmp_path / "new")
    assert copy.common() == 8
    assert copy.of(0, 0).load() == {1: {1: b"c"}}


def test_no_state_before_a_tick_counts_without_the_rows_that_wait_for_it(tmp_path):
    """A late event changes no state. Another task is at tick 15, where a start may resume."""
    task, other = TaskSnapshots(tmp_path / "0.0"), TaskSnapshots(tmp_path / "0.1")
    task.store(10, {0: {1: b"state"}}, is_full=True)
    store_side_outputs(task.folder, 20, [(0, 0, b"came late at tick 12")])
    task.store(20, {}, is_full=False)
    for tick in (10, 15):
        other.store(tick, {0: {1: b"state"}}, is_full=True)
    assert Snapshots(tmp_path, 1, 2).common() == 10
    other.store(20, {}, is_full=False)
    assert Snapshots(tmp_path, 1, 2).common() == 20


def test_what_is_void_is_gone_for_good_snapshots_first(tmp_path, monkeypatch):
    """A removed snapshot that a power loss brings back must not be there without its rows."""
    task = TaskSnapshots(tmp_path)
    for tick in (10, 20):
        store_side_outputs(tmp_path, tick, [(0, 0, b"late")])
        task.store(tick, {0: {1: b"state"}}, is_full=False)
    durable = []
    monkeypatch.setattr(
        snapshots,
        "sync_folder",
        lambda _: durable.append({path.name for path in tmp_path.iterdir()}),
    )
    task.drop_after(10)
    kept = {"10-10.-1.delta", "10.side-output"}
    assert durable == [kept | {"20.side-output"}, kept]
