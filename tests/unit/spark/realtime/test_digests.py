"""Rule 10: a replay that has other rows than were released stops the run."""

import contextlib
import random
from dataclasses import dataclass

import numpy as np
import pytest
from support.spark.toy_counting import put
from support.spark.toy_realtime import Killed, MemorySink, ToyRealTime, toy_job

import cutwater as cw
from cutwater.errors import RunError
from cutwater.spark.connectors.base.sink import BucketRows
from cutwater.spark.exchange.columns import Records
from cutwater.spark.realtime import digests
from cutwater.spark.realtime.digests import DigestLog, digest_of

DRAWN = []
NO_ROWS = digest_of([])


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@dataclass(frozen=True)
class Boxed:
    value: object


def drawn(item: Item) -> Item:
    DRAWN.append(item)
    return Item(item.name, len(DRAWN))  # another one each time


def drawing():
    flow = cw.Flow("drawing")
    flow.sink("out", flow.source("s0", Item).map(drawn))
    return flow


def released(toy):
    shown = MemorySink.shown_rows.get(toy.job.sinks["out"].name, {})
    return sum(map(len, shown.values()))


def run_until_released(toy):
    """Killed with something shown and in no snapshot."""
    for steps in range(5, 200, 5):
        with contextlib.suppress(Killed):
            toy.run(kill_at=steps)
        if released(toy):
            return
    raise AssertionError("nothing was released before the end")


def test_a_flow_that_is_not_deterministic_is_stopped_by_its_replay(tmp_path):
    toy = ToyRealTime(toy_job(drawing(), tmp_path), random.Random(1), snapshot_ticks=10_000)
    put(toy.job, toy.random, 0, 12)
    run_until_released(toy)
    with pytest.raises(RunError) as raised:
        toy.run()
    assert [problem.code for problem in raised.value.problems] == ["not-deterministic"]


def test_another_flow_may_replay_if_it_was_let(tmp_path):
    """The rows differ since the flow does, which the start has asked about."""
    toy = ToyRealTime(toy_job(drawing(), tmp_path), random.Random(1), snapshot_ticks=10_000)
    put(toy.job, toy.random, 0, 12)
    run_until_released(toy)
    other = cw.Flow("drawing")
    other.sink("out", other.source("s0", Item).map(lambda item: Item(item.name, -1)))
    generation = toy.job.generation
    toy.job = toy_job(other, tmp_path)
    toy.job = type(toy.job)(**{**vars(toy.job), "generation": generation})
    toy.run()
    assert released(toy) == 12


def bucket(label, values):
    return BucketRows(label, [b"%d" % number for number in range(len(values))], values)


def test_a_digest_is_that_of_the_rows():
    layout = None
    lines = [b'{"a":1}\n', b'{"a":2}\n']
    first = digest_of([("out", [bucket(3, lines)])])
    assert first == digest_of([("out", [bucket(3, list(lines))])])
    for other in (
        [("out", [bucket(3, lines[:1])])],
        [("out", [bucket(4, lines)])],
        [("other", [bucket(3, lines)])],
        [("out", [bucket(3, lines[::-1])])],
        [("out", [bucket(3, lines), bucket(4, lines)])],
    ):
        assert digest_of(other) != first
    columns = Records(layout, {"a": np.array([1, 2]), "b": np.array(["x", {"y"}], dtype=object)})
    same = Records(layout, {"a": np.array([1, 2]), "b": np.array(["x", {"y"}], dtype=object)})
    changed = Records(layout, {"a": np.array([1, 3]), "b": np.array(["x", {"y"}], dtype=object)})
    assert digest_of([("out", [bucket(3, columns)])]) == digest_of([("out", [bucket(3, same)])])
    assert digest_of([("out", [bucket(3, columns)])]) != digest_of([("out", [bucket(3, changed)])])


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ({1: "a", 2: "b"}, {1: "a", 2: "c"}),
        ({("a", 1): 2}, {("a", 2): 2}),
        ({"a": 1, 2: 3}, {"a": 1, 2: 4}),
        (1 << 70, 1 << 71),
        ("\ud800", "\ud801"),
        ({frozenset({1, 2})}, {frozenset({1, 3})}),
    ],
    ids=repr,
)
def test_a_digest_is_made_of_every_value_that_a_sink_may_get(value, other):
    """Of one in a record, too; some of them are more than msgpack can say."""
    for wrap in (lambda v: v, lambda v: [v], lambda v: Boxed(v)):
        first, same, changed = (
            digest_of([("out", [bucket(3, [wrap(v)])])]) for v in (value, value, other)
        )
        assert first == same
        assert first != changed


def test_digests_that_a_snapshot_covers_or_that_are_cut_off_are_not_compared(tmp_path):
    path = tmp_path / "digests" / "0.0"
    log = DigestLog(path, -1)
    for tick in range(5):
        log.note(tick, tick)
    log.close()
    path.write_bytes(path.read_bytes()[:-3])
    log = DigestLog(path, 1)
    for tick in (0, 1):
        log.compare(tick, 99)
    for tick in (2, 3):
        with pytest.raises(RunError):
            log.compare(tick, 99)
        log.compare(tick, tick)
    log.compare(4, 99)
    log.close()


def log_of(path, *noted):
    log = DigestLog(path, -1)
    for tick, digest in noted:
        log.note(tick, digest)
    log.close()
    return path


def test_a_tick_that_is_not_in_the_log_had_no_rows_if_a_later_one_is(tmp_path):
    log = DigestLog(log_of(tmp_path / "0.0", (2, 22), (5, NO_ROWS)), -1)
    log.compare(1, NO_ROWS)
    with pytest.raises(RunError, match="tick 1 was released before"):
        log.compare(1, 11)
    log.compare(2, 22)
    with pytest.raises(RunError, match="tick 4 was released before"):
        log.compare(4, 44)
    log.pass_over(5)  # without rows then, and without any now
    log.compare(6, 66)
    log.close()


def test_a_tick_with_rows_is_not_passed_over(tmp_path):
    log = DigestLog(log_of(tmp_path / "0.0", (2, 22), (5, 55)), -1)
    log.pass_over(1)
    with pytest.raises(RunError, match="tick 2 was released before"):
        log.pass_over(2)
    with pytest.raises(RunError, match="tick 2 was released before"):
        log.compare(5, 55)
    log.compare(2, 22)
    with pytest.raises(RunError, match="tick 5 was released before"):
        log.pass_over(7)
    log.close()


def test_behind_a_damaged_digest_nothing_is_known(tmp_path):
    """A power loss may have taken any of them, so that a tick without one may have had rows."""
    path = log_of(tmp_path / "0.0", (1, 11), (2, 22), (3, 33))
    size = path.stat().st_size // 3
    path.write_bytes(path.read_bytes()[:size] + bytes(size) + path.read_bytes()[2 * size :])
    log = DigestLog(path, -1)
    log.compare(1, 11)
    for tick in (2, 3):
        log.compare(tick, 99)
    log.close()


def test_digests_are_copied_up_to_a_tick(tmp_path):
    """What comes behind is forgotten, and is planned anew in other ticks."""
    log_of(tmp_path / "old" / "0.1", (1, 11), (2, 22), (3, 33))
    (tmp_path / "old" / "0.1.new").write_bytes(b"left by a crash")
    digests.copy_digests(tmp_path / "old", tmp_path / "new", 2)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["0.1"]
    log = DigestLog(tmp_path / "new" / "0.1", 1)
    log.compare(2, 22)
    log.pass_over(3)
    log.compare(3, 99)
    log.close()


PASSED = set()


def is_passed(item: Item) -> bool:
    return item.size % 12 in PASSED


@pytest.mark.parametrize(
    "later", [{0, 10, 11}, set()], ids=["rows where there were none", "none where there were some"]
)
def test_a_replay_with_rows_in_other_ticks_is_stopped(tmp_path, later):
    """The ledger would drop rows of an earlier tick without a word; and it misses none."""
    flow = cw.Flow("passing")
    flow.sink("out", flow.source("s0", Item).filter(is_passed))
    toy = ToyRealTime(
        toy_job(flow, tmp_path), random.Random(1), partitions=1, snapshot_ticks=10_000
    )
    for number in range(4):
        lines = "".join(f'{{"name":"a","size":{size}}}\n' for size in range(12))
        (tmp_path / "in" / "s0" / f"{number}").write_text(lines)
    PASSED.clear()
    PASSED.update({10, 11})
    run_until_released(toy)
    PASSED.clear()
    PASSED.update(later)
    with pytest.raises(RunError) as raised:
        toy.run()
    assert [problem.code for problem in raised.value.problems] == ["not-deterministic"]


def test_tasks_that_start_together_rewrite_their_digests_through_files_of_their_own(
    tmp_path, monkeypatch
):
    """Partitions of a level open their logs at the same time."""
    create, rewritten = digests.create_file, []

    def create_file(path):
        rewritten.append(path)
        return create(path)

    monkeypatch.setattr(digests, "create_file", create_file)
    for partition in range(2):
        DigestLog(tmp_path / f"0.{partition}", -1).close()
    assert len(set(rewritten)) == 2
