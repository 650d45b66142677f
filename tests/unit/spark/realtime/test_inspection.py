"""What is read of a checkpoint of the real-time engine without Spark: states, how far it is."""

import shutil

import pytest
from support.spark.toy_checkpoints import Checkpointed

from cutwater.errors import RunError
from cutwater.spark import describe, read_frontiers, read_state, verify
from cutwater.spark.embedded import session
from cutwater.spark.realtime.inspection import verify as verifying
from cutwater.spark.realtime.opening import newest_opening
from cutwater.spark.realtime.snapshots import TaskSnapshots


@pytest.fixture
def sales(tmp_path, monkeypatch):
    def no_session(*args, **kwargs):
        raise AssertionError("a JVM was about to start")

    monkeypatch.setattr(session, "embedded_session", no_session)
    made = Checkpointed(tmp_path, partitions=2, snapshot_ticks=3)
    made.sell(0, [("a", 1, 1), ("b", 2, 2), ("a", 3, 5)])
    return made


def states(place, step, **asked):
    return {row["key"]: row["state"] for row in read_state(place.root, step, **asked).rows}


def codes(raised):
    return [problem.code for problem in raised.value.problems]


def newest_task(place, level=0):
    """A task of the level with files, and its newest one."""
    snapshots = newest_opening(place.root).snapshots
    for partition in range(2):
        task = snapshots.of(level, partition)
        if task.stored():
            return task, task.folder / task.stored()[-1].name
    raise AssertionError("nothing is stored")


def test_the_state_of_each_level_at_the_newest_snapshot(sales):
    sales.run()
    assert states(sales.checkpoint, "sold") == {"a": 4, "b": 2}
    assert states(sales.checkpoint, "changes") == {"a": 2, "b": 1}
    found = read_state(sales.checkpoint.root, "sold", keys=["b"])
    assert (found.unit, found.rows) == ("tick", [{"key": "b", "state": 2}])
    assert read_state(sales.checkpoint.root, "sold", limit=1).is_whole is False


def test_a_state_at_an_earlier_tick_that_is_still_there(sales):
    sales.run()
    first = read_state(sales.checkpoint.root, "sold").epoch
    sales.sell(1, [("a", 10, 6)])
    sales.run()
    assert states(sales.checkpoint, "sold") == {"a": 14, "b": 2}
    assert states(sales.checkpoint, "sold", epoch=first) == {"a": 4, "b": 2}
    with pytest.raises(RunError) as raised:
        read_state(sales.checkpoint.root, "sold", epoch=10**9)
    assert codes(raised) == ["unknown-epoch"]


def test_a_state_before_the_first_snapshot_is_refused(sales):
    sales.run(kill_at=3)
    with pytest.raises(RunError) as raised:
        read_state(sales.checkpoint.root, "sold")
    assert codes(raised) == ["no-epoch-finished"]


def test_a_file_that_a_run_replaces_meanwhile_is_read_again(sales, monkeypatch):
    sales.run()
    load, failures = TaskSnapshots.load, [FileNotFoundError("it was renamed")]

    def loaded(task, tick=None):
        if failures:
            raise failures.pop()
        return load(task, tick)

    monkeypatch.setattr(TaskSnapshots, "load", loaded)
    assert states(sales.checkpoint, "sold") == {"a": 4, "b": 2}


def test_what_a_checkpoint_holds(sales):
    sales.run(kill_at=40)
    killed = describe(sales.checkpoint.root)
    assert killed.ticks.to_replay > 0
    assert killed.is_mid_epoch
    sales.run()
    found = describe(sales.checkpoint.root)
    assert found.ticks.to_replay == 0
    assert found.ticks.snapshot == read_state(sales.checkpoint.root, "sold").epoch
    assert found.next_epoch > found.ticks.snapshot
    assert found.sources["sales"].read == {"files": 1, "bytes": 108}
    assert (found.sources["sales"].newest_time, found.steps) == (5, ["changes", "sold"])


def test_frontiers(sales):
    sales.run()
    found = read_frontiers(sales.checkpoint.root)
    assert (found.unit, {step.completed for step in found.steps}) == ("tick", {2})
    assert not read_frontiers(sales.checkpoint.root, asked="3").steps[0].is_complete
    assert read_frontiers(sales.checkpoint.root, asked="2").steps[0].is_complete


def test_a_checkpoint_that_was_moved_is_read_where_it_is(sales, tmp_path):
    sales.run()
    moved = tmp_path / "moved"
    sales.checkpoint.root.rename(moved)
    assert read_state(moved, "sold", keys=["a"]).rows == [{"key": "a", "state": 4}]
    assert describe(moved).sources["sales"].read["files"] == 1


def test_a_whole_checkpoint_is_verified(sales):
    sales.run(kill_at=40)
    assert verify(sales.checkpoint.root).problems == []
    sales.run(batch_ends=2)
    found = verify(sales.checkpoint.root)
    assert (found.flow, found.problems) == ("sales", [])
    assert found.files > 5


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def test_a_snapshot_that_is_not_what_was_written(sales):
    sales.run()
    flip(newest_task(sales.checkpoint)[1])
    assert [p.code for p in verify(sales.checkpoint.root).problems] == ["damaged-snapshot"]
    with pytest.raises(RunError) as raised:
        read_state(sales.checkpoint.root, "sold")
    assert codes(raised) == ["damaged-snapshot"]


def test_a_delta_that_is_missing(sales):
    sales.run()
    for number in (1, 2):
        sales.sell(number, [(shop, 1, 9) for shop in "abcdefgh"])
        sales.run()
    task, _ = newest_task(sales.checkpoint)
    assert len(task.stored()) > 2
    (task.folder / task.stored()[1].name).unlink()
    problems = verify(sales.checkpoint.root).problems
    assert [p.code for p in problems] == ["damaged-snapshot"]
    assert f"the file of tick {task.stored()[1].after} is missing" in str(problems[0])


def test_a_plan_that_is_damaged_in_its_middle_is_no_crash(sales):
    sales.run(kill_at=60)
    sales.sell(1, [("a", 1, 6)])
    sales.run(kill_at=60)
    path = newest_opening(sales.checkpoint.root).plan_path("sales")
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) > 2
    path.write_bytes(b"".join([lines[0], b"0" + lines[1], *lines[2:]]))
    assert [p.code for p in verify(sales.checkpoint.root).problems] == ["damaged-file"]
    with pytest.raises(RunError):
        sales.checkpoint.next_epoch()
    path.write_bytes(b"".join(lines)[:-3])
    assert verify(sales.checkpoint.root).problems == []


@pytest.mark.parametrize("missing", ["plan/sales.log", "opening.json"])
def test_a_file_that_is_missing_or_is_none(sales, missing):
    sales.run()
    path = newest_opening(sales.checkpoint.root).folder / missing
    kept = path.read_bytes()
    flip(path)
    assert verify(sales.checkpoint.root).problems
    path.write_bytes(kept)
    assert not verify(sales.checkpoint.root).problems


def test_a_generation_without_its_plan_is_not_whole(sales):
    sales.run()
    shutil.rmtree(newest_opening(sales.checkpoint.root).folder / "plan")
    assert [p.code for p in verify(sales.checkpoint.root).problems] == ["damaged-file"]


@pytest.mark.parametrize("missing", ["opening.json", "plan/sales.log", "snapshots/0.0"])
def test_what_is_missing_is_found_and_is_no_new_beginning(sales, missing):
    """Else its input would be read from the beginning, or its states would be empty."""
    for _ in range(2):
        sales.run()
    path = newest_opening(sales.checkpoint.root).folder / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    (problem,) = verify(sales.checkpoint.root).problems
    assert problem.code in ("damaged-file", "damaged-snapshot")
    assert "missing" in problem.message
    with pytest.raises(RunError) as raised:
        sales.run()
    assert codes(raised) == [problem.code]


def test_a_file_that_a_run_replaces_while_it_is_verified_is_not_damaged(sales, monkeypatch):
    sales.run()
    before = newest_task(sales.checkpoint)[1]
    look = verifying.read_changes

    def replaced_first(path):
        if path == before:
            path.rename(path.with_name(path.name.replace("-", "-9", 1)))
        return look(path)

    monkeypatch.setattr(verifying, "read_changes", replaced_first)
    assert verify(sales.checkpoint.root).problems == []
    assert not before.exists()
