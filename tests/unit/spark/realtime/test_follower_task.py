"""A reader that reads a share of what the first one of its source plans."""

import random
from collections import Counter
from pathlib import Path

import pytest
from support.spark.toy_counting import flow, put
from support.spark.toy_realtime import MemorySink, ToyRealTime, toy_job

from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.realtime.opening import newest_opening, open_generation
from cutwater.spark.realtime.plan_log import PlanLog, PlannedTick, TickPlan, write_plan
from cutwater.spark.realtime.positions import PositionFile, ReaderPosition
from cutwater.spark.realtime.readers.follower_task import FollowerTask, PlanTail
from cutwater.spark.realtime.wire import NO_SENDER


def ticks_of(planned):
    return [each.tick for each in planned]


def test_a_tail_gives_each_tick_once_and_none_that_is_not_decided(tmp_path):
    path = tmp_path / "items.log"
    write_plan(path, TickPlan(ticks=(PlannedTick(1, ()), PlannedTick(2, ()))))
    tail, log = PlanTail(path), PlanLog(path)
    assert ticks_of(tail.ticks(0, 1)) == [1]
    log.append(PlannedTick(5, ()))
    assert ticks_of(tail.ticks(1, 4)) == [2]
    assert ticks_of(tail.ticks(4, 9)) == [5]
    log.close()
    tail.close()


def test_a_tail_goes_on_in_a_plan_that_was_shortened(tmp_path):
    path = tmp_path / "items.log"
    write_plan(path, TickPlan(ticks=tuple(PlannedTick(tick, ()) for tick in range(1, 6))))
    tail = PlanTail(path)
    assert ticks_of(tail.ticks(0, 3)) == [1, 2, 3]
    write_plan(path, TickPlan((), 2, tuple(PlannedTick(tick, ()) for tick in range(3, 8))))
    assert ticks_of(tail.ticks(3, 6)) == [4, 5, 6]
    tail.close()


def test_half_a_line_is_read_when_it_is_whole(tmp_path):
    path = tmp_path / "items.log"
    write_plan(path, TickPlan(ticks=(PlannedTick(1, ()),)))
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    tail = PlanTail(path)
    assert ticks_of(tail.ticks(0, 9)) == []
    with path.open("ab") as file:
        file.write(whole[-5:])
    assert ticks_of(tail.ticks(0, 9)) == [1]
    tail.close()


@pytest.fixture
def follower(tmp_path):
    """The second of two readers, and where the first one tells how far it is."""
    job = toy_job(flow(1, 1), tmp_path)
    for name, sink in job.sinks.items():
        sink.claim(job.claim_of(name))
    opening = open_generation(job, partitions=1, snapshot_ticks=7, now=1000.0, readers=2)
    position = PositionFile(opening.reader_position(0))
    task = FollowerTask(job, opening, 1, 8)
    yield task, position
    task.close()
    position.close()


def barriers(rows):
    found = [row.to_pylist()[0] for row in rows]
    return [row["tick"] for row in found if row["sender"] != NO_SENDER]


def test_what_an_earlier_batch_decided_is_not_followed(follower):
    """It may be decided anew: ticks that were empty then may have records now."""
    task, position = follower
    position.write(*ReaderPosition(decided=50, batch=7))
    assert barriers(task.step()) == []
    position.write(*ReaderPosition(decided=40, batch=8))
    assert barriers(task.step()) == [40]
    assert barriers(task.step()) == []


def test_a_tick_without_a_share_is_passed_by_a_barrier_at_once(follower):
    """Else the tick waits for a later one; a run that stops plans none, and would wait for ever."""
    task, position = follower
    log = PlanLog(task._opening.plan_path("s0"))
    log.append(PlannedTick(40, ()))
    log.close()
    position.write(*ReaderPosition(planned=40, decided=40, batch=8))
    assert barriers(task.step()) == [40]
    assert barriers(task.step()) == []


@pytest.mark.parametrize("readers", [1, 2, 3])
def test_every_chunk_is_in_the_share_of_one_reader(tmp_path, readers):
    """⋃ shares = chunks, and no two of them have one in common."""
    job = toy_job(flow(1, 2), tmp_path)
    opening = open_generation(job, partitions=1, snapshot_ticks=7, now=1000.0, readers=readers)
    chunks = [Chunk(number, 0, 10) for number in range(7)]
    for source in range(2):
        numbers = range(source * readers, (source + 1) * readers)
        assert {opening.source_of(number) for number in numbers} == {opening.sources[source]}
        shared = Counter(c.number for n in numbers for c in opening.share_of(n, chunks))
        assert shared == Counter(range(7))


def test_the_number_of_readers_may_change_from_run_to_run(tmp_path):
    toy = ToyRealTime(toy_job(flow(1, 1), tmp_path), random.Random(1))
    for number, readers in enumerate([1, 3, 2]):
        put(toy.job, toy.random, number, 10)
        toy.readers = readers
        toy.run()
        assert newest_opening(Path(toy.job.checkpoint)).readers == readers
    shown = MemorySink.shown_rows[toy.job.sinks["out"].name]
    assert sum(map(len, shown.values())) == 30
