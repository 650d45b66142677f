"""The counterexamples of the model of a real-time run, on the code of the engine without Spark.

Each of them loses or doubles something if the rule it is named after is left out; see
``tests/support/models/broken_realtime.py``.
"""

import contextlib
import json
import random
from pathlib import Path

import pytest
from support.spark.toy_counting import expected_counts, flow, put, rows
from support.spark.toy_realtime import Killed, MemorySink, ToyRealTime, toy_job

from cutwater.spark.realtime import opening as openings
from cutwater.spark.realtime.opening import newest_opening
from cutwater.spark.realtime.operator_task import OperatorTask
from cutwater.spark.realtime.plan_log import read_plan
from cutwater.spark.realtime.readers import reader_task
from cutwater.spark.realtime.readers.reader_task import ReaderTask
from cutwater.spark.realtime.snapshots import Snapshots, TaskSnapshots


def toy_of(folder, seed=1, levels=1, sources=2, **how):
    return ToyRealTime(toy_job(flow(levels, sources), folder), random.Random(seed), **how)


def put_into(toy, source, number, lines):
    path = Path(toy.job.sources[source].path) / f"{number:04}"
    path.write_text("".join(json.dumps({"name": name, "size": 1}) + "\n" for name in lines))


def run_killed(toy, steps):
    with contextlib.suppress(Killed):
        toy.run(kill_at=steps)


def check_whole(toy):
    assert len(rows(toy.job, "out")) == sum(expected_counts(toy.job).values())


def newest_released(toy):
    ledger = MemorySink.ledger.get(toy.job.sinks["out"].name, {})
    return max((tick for tick, _ in ledger.values()), default=-1)


@pytest.mark.parametrize("seed", range(4))
def test_rule_1_an_idle_partition_at_the_crash_and_new_records_there_afterwards(tmp_path, seed):
    """New records of the idle source must not go into ticks that the other one has released."""
    toy = toy_of(tmp_path, seed, snapshot_ticks=10_000)
    put_into(toy, "s0", 0, "abcdefgh" * 3)
    run_killed(toy, 150)
    shown = newest_released(toy)
    assert shown >= 0
    toy.clock -= 5  # and the clock was set back
    put_into(toy, "s1", 0, "abcdefgh")
    toy.run()
    ticks = [tick for tick, planned in toy.planned.items() if "s1" in planned]
    assert ticks
    assert min(ticks) > shown
    check_whole(toy)


class OneLaneFrozen(ToyRealTime):
    """A task of the last level gets nothing any more, while the others go on."""

    frozen = None

    def _deliver(self, operators, place):
        if place[0] == max(level for level, _ in operators) and place[2] == self.frozen:
            return
        super()._deliver(operators, place)


@pytest.mark.parametrize("levels", [1, 2])
def test_rule_3_a_snapshot_with_a_frozen_sink_does_not_count(tmp_path, levels):
    """What the frozen task has not released must be replayed, so no snapshot has it."""
    toy = OneLaneFrozen(
        toy_job(flow(levels, 1), tmp_path), random.Random(2), partitions=2, snapshot_ticks=1
    )
    toy.frozen = 1
    for number in range(4):
        put(toy.job, toy.random, number, 8)
    run_killed(toy, 900)
    opening = newest_opening(tmp_path / "checkpoint")
    others = [s.through for s in opening.snapshots.of(levels - 1, 0).stored()]
    assert max(others) > opening.released()  # the other task is ahead, and has stored that
    assert opening.snapshots.common() <= opening.released()
    assert all(read_plan(opening.plan_path("s0")).after(opening.snapshots.common()))
    toy.frozen = None
    toy.run()
    check_whole(toy)


DURABLE = ["make_folder", "write_plan", "sync_folder", "write_json"]


@pytest.mark.parametrize("name", [*DURABLE, "copied_to", "rmtree"])
@pytest.mark.parametrize("is_done", [False, True])
def test_rule_3_a_crash_during_the_recovery_takes_no_plan_away(
    tmp_path, monkeypatch, name, is_done
):
    """Before and after each thing that a start makes durable; then once more in the replay."""
    toy = toy_of(tmp_path, seed=3, snapshot_ticks=3)
    put(toy.job, toy.random, 0, 10)
    run_killed(toy, 60)
    owner = {"copied_to": openings.Snapshots, "rmtree": openings.shutil}.get(name, openings)
    real, calls = getattr(owner, name), []

    def dying(*args, **kwargs):
        calls.append(name)
        if is_done:
            real(*args, **kwargs)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dying)
        run_killed(toy, None)
    assert calls
    for steps in (1, 7, 20):
        run_killed(toy, steps)
    toy.run()
    check_whole(toy)


def tasks_of(toy, opening):
    """The tasks of a generation, which its successor takes for dead."""

    def sleep(_seconds):
        toy.clock += 0.01

    reader = ReaderTask(toy.job, opening, 0, 99, lambda: toy.clock, sleep)
    operators = {
        (level, partition): OperatorTask(toy.job, opening, level, partition)
        for level, partition in opening.tasks()
    }
    return reader, operators


def test_rule_6_a_zombie_reader_and_its_operators_change_nothing(tmp_path):
    toy = toy_of(tmp_path, seed=4, sources=1, snapshot_ticks=2)
    put(toy.job, toy.random, 0, 10)
    run_killed(toy, 80)
    zombies = newest_opening(tmp_path / "checkpoint")
    job, (reader, operators) = toy.job, tasks_of(toy, zombies)
    put(toy.job, toy.random, 1, 10)
    run_killed(toy, 30)  # the successor, which goes on from there and dies as well
    successor = newest_opening(tmp_path / "checkpoint")
    before = read_plan(successor.plan_path("s0"))

    toy.clock += 1
    is_fenced = False
    for _, row in zip(range(60), reader.rows(lambda: False), strict=False):
        receiver = row.column("receiver")[0].as_py()
        try:
            list(operators[0, receiver].accept(row))
        except AssertionError as error:  # the ledger knows a newer generation
            is_fenced = is_fenced or str(error).startswith("fenced")
    assert is_fenced
    reader.close()
    for task in operators.values():
        task.finish()
        task.close()
    assert job.generation < successor.generation
    assert read_plan(successor.plan_path("s0")) == before
    assert newest_opening(tmp_path / "checkpoint") == successor
    for level, partition in successor.tasks():
        stored = successor.snapshots.of(level, partition).stored()
        assert all(each.through <= max(successor.known_ticks()) for each in stored)
    toy.run()
    check_whole(toy)


def test_rule_6_what_a_zombie_stores_while_its_successor_opens_is_not_taken_over(
    tmp_path, monkeypatch
):
    """Ticks without rows meet no fence: a zombie may store a state with records that are forgotten
    and planned anew.
    """
    toy = toy_of(tmp_path, seed=6, snapshot_ticks=2)
    put(toy.job, toy.random, 0, 20)
    run_killed(toy, 90)
    before = newest_opening(tmp_path / "checkpoint")
    real, taken_over = openings.newest_released, []

    def newest_released(job, plans, common):
        taken_over.append(common)
        for level, partition in before.tasks():
            task = before.snapshots.of(level, partition)
            newer = max(each.through for each in before.snapshots.all_stored()) + 2
            task.store(newer, {}, is_full=True)
            task.drop_before(newer)
        return real(job, plans, common)

    with monkeypatch.context() as patch:
        patch.setattr(openings, "newest_released", newest_released)
        run_killed(toy, 1)
    opening = newest_opening(tmp_path / "checkpoint")
    assert opening.generation > before.generation
    assert taken_over[0] >= 0
    assert opening.snapshots.common() == taken_over[0]
    toy.run()
    check_whole(toy)


def test_rule_5_a_snapshot_that_only_some_tasks_have_is_void(tmp_path, monkeypatch):
    toy = toy_of(tmp_path, seed=5, snapshot_ticks=2)
    put(toy.job, toy.random, 0, 20)
    store = TaskSnapshots.store

    def only_the_first(task, tick, changes, *, is_full):
        if task.folder.name == "0.0" or tick < 4:
            store(task, tick, changes, is_full=is_full)

    with monkeypatch.context() as patch:
        patch.setattr(TaskSnapshots, "store", only_the_first)
        run_killed(toy, 120)
    opening = newest_opening(tmp_path / "checkpoint")
    ahead = [each.through for each in opening.snapshots.of(0, 0).stored()]
    assert max(ahead) > opening.snapshots.common()
    toy.run()
    check_whole(toy)


def counts_by_name(toy):
    found = {}
    for row in rows(toy.job, "out"):
        found.setdefault(row["name"], []).append(row["count"])
    return found


def test_rule_6_a_zombie_that_compacts_its_plan_while_its_successor_opens_loses_nothing(
    tmp_path, monkeypatch
):
    """After the snapshots were copied, and before the plans are read: then the copy is too old."""
    toy = toy_of(tmp_path, seed=6, sources=1, snapshot_ticks=10**6)
    put(toy.job, toy.random, 0, 20)
    run_killed(toy, 90)
    zombies = newest_opening(tmp_path / "checkpoint")
    reader, operators = tasks_of(toy, zombies)
    replay = reader.rows(lambda: False)
    for _, row in zip(range(80), replay, strict=False):
        for one in (row.slice(number, 1) for number in range(row.num_rows)):
            list(operators[0, one.column("receiver")[0].as_py()].accept(one))
    copied_to, copies = Snapshots.copied_to, []

    def copied_before_they_store(snapshots, folder):
        copies.append(copied_to(snapshots, folder))
        if len(copies) == 1:
            for task in operators.values():
                task.finish()
                task.close()
            reader._compact_plan()
        return copies[-1]

    with monkeypatch.context() as patch:
        patch.setattr(reader_task, "_LARGE_PLAN", 1)
        patch.setattr(Snapshots, "copied_to", copied_before_they_store)
        put(toy.job, toy.random, 1, 20)
        toy.run()
    replay.close()
    assert len(copies) == 2
    wanted = {n: list(range(1, last + 1)) for n, last in expected_counts(toy.job).items()}
    assert counts_by_name(toy) == wanted
