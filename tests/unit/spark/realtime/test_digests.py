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
    for tick in (0, 1, 4):
        log.compare(tick, 99)
    for tick in (2, 3):
        log.compare(tick, tick)
        with pytest.raises(RunError):
            log.compare(tick, 99)
    log.close()


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
