"""Rule 11: ticks of which nothing was released are forgotten; their input is planned anew."""

import contextlib
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.spark.toy_counting import Count, expected_counts, flow, put, rows
from support.spark.toy_realtime import Killed, MemorySink, ToyRealTime, toy_job

import cutwater as cw
from cutwater.errors import CutwaterError, RefusedError
from cutwater.spark import call, json_lines
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.realtime.checkpoint import RealTimeCheckpoint
from cutwater.spark.realtime.digests import DigestLog
from cutwater.spark.realtime.opening import newest_opening
from cutwater.spark.realtime.plan_log import PlannedTick, TickPlan
from cutwater.spark.realtime.unreleased import without_unreleased
from cutwater.spark.recovery import Resumption, recover

SPARK = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
NO_SNAPSHOT = 10_000


def toy_of(root, seed=1, levels=1, sources=1, **how):
    how = {"snapshot_ticks": NO_SNAPSHOT, **how}
    return ToyRealTime(toy_job(flow(levels, sources), root), random.Random(seed), **how)


def put_lines(toy, name, *lines):
    path = Path(toy.job.sources["s0"].path) / name
    path.write_text("".join(f"{line}\n" for line in lines))


def good(name):
    return f'{{"name":"{name}","size":1}}'


def check_whole(toy):
    """Each row once, and those of a key in order."""
    counts = {}
    for row in rows(toy.job, "out"):
        counts.setdefault(row["name"], []).append(row["count"])
    assert counts == {n: list(range(1, last + 1)) for n, last in expected_counts(toy.job).items()}


def run_killed(toy, kill_at):
    with contextlib.suppress(Killed):
        toy.run(kill_at=kill_at)


def run_until(toy, is_so, run=run_killed):
    """Killed as soon as something is so."""
    for steps in range(1, 60):
        run(toy, steps)
        if is_so():
            return
    raise AssertionError("it never was so")


def released_of(toy, sinks=("out",)):
    ledgers = (MemorySink.ledger.get(toy.job.sinks[name].name, {}) for name in sinks)
    return max((tick for ledger in ledgers for tick, _ in ledger.values()), default=-1)


def planned_of(opening):
    found = zip(opening.sources, opening.plans(), strict=True)
    return {(name, each.tick): each.chunks for name, plan in found for each in plan.ticks}


@pytest.mark.parametrize("are_before", [False, True], ids=["first tick", "behind released ticks"])
@pytest.mark.parametrize("readers", [1, 2])
def test_a_bad_record_is_corrected_in_its_file(tmp_path, are_before, readers):
    toy = toy_of(tmp_path, readers=readers)
    if are_before:
        put_lines(toy, "0000", *map(good, "abcabc"))
        run_killed(toy, 60)
        assert released_of(toy) >= 0
    put_lines(toy, "0001", good("a"), '{"name":"a","size":"bad"}')
    for _ in range(2):
        with pytest.raises(CutwaterError, match="bad-record"):
            toy.run()
    put_lines(toy, "0001", good("a"), good("b"), good("b"))
    toy.run()
    check_whole(toy)


def test_a_tick_that_was_planned_too_large_is_planned_smaller(tmp_path):
    toy = toy_of(tmp_path)
    path = toy.job.sources["s0"].path
    toy.job = replace(toy.job, sources={"s0": json_lines(path, 1 << 20)})
    put(toy.job, toy.random, 0, 40)
    run_until(toy, lambda: toy.planned)
    assert released_of(toy) == -1
    assert [len(chunks) for chunks in toy.planned.values()] == [1]
    toy.job = replace(toy.job, sources={"s0": json_lines(path, 64)})
    toy.run()
    assert len(toy.planned) > 10
    check_whole(toy)


@pytest.mark.parametrize("seed", range(12))
def test_released_ticks_stay_as_planned_and_no_number_comes_again(tmp_path, seed):
    """R bounds what is dropped, in all sources alike; K never falls, even if a clock goes back."""
    rng = random.Random(seed)
    toy = toy_of(tmp_path, seed, levels=1 + seed % 2, sources=1 + seed % 3, readers=1 + seed % 2)
    sinks, highest, forgot = list(toy.job.sinks), -1, 0
    for number in range(4):
        put(toy.job, rng, number, 12)
        run_killed(toy, rng.randrange(3, 150))
        before = newest_opening(tmp_path / "checkpoint")
        planned, released = planned_of(before), released_of(toy, sinks)
        highest = max([highest, released, before.first_tick - 1, *(tick for _, tick in planned)])
        common, toy.clock = before.snapshots.common(), toy.clock - rng.choice([0, 5])
        run_killed(toy, 1)
        after = newest_opening(tmp_path / "checkpoint")
        bound = max(released, common)
        kept = {at: chunks for at, chunks in planned.items() if common < at[1] <= bound}
        assert planned_of(after) == kept
        assert after.first_tick > highest
        forgot += len(planned) - len(kept)
    assert forgot
    toy.run()
    check_whole(toy)


class Dying:
    """Ends the process before the n-th of the calls that change or sync files."""

    CALLS = (
        (Path, "unlink"), (Path, "rename"), (Path, "replace"), (Path, "hardlink_to"),
        (os, "fsync"), (shutil, "rmtree"), (shutil, "copytree"),
    )  # fmt: skip

    def __init__(self, patch, before):
        self.left = before
        for owner, name in self.CALLS:
            patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, real):
        def called(*given, **named):
            if self.left == 0:
                raise Killed
            self.left -= 1
            return real(*given, **named)

        return called


def test_a_crash_between_any_two_steps_of_forgetting_loses_and_doubles_nothing(
    tmp_path, monkeypatch
):
    """Some ticks were released, one behind them is wrong, and its input is corrected."""
    for steps in range(100):
        toy = toy_of(tmp_path / str(steps), sources=2)
        put(toy.job, toy.random, 0, 6)
        run_killed(toy, 50)
        put_lines(toy, "0001", good("a"), '{"name":"a","size":"bad"}')
        with pytest.raises(CutwaterError, match="bad-record"):
            toy.run()
        put_lines(toy, "0001", good("a"))
        with monkeypatch.context() as patch:
            patch.setattr(toy, "_batch", lambda *_args, **_how: None)  # the start alone
            dying = Dying(patch, steps)
            run_killed(toy, None)
        toy.clock -= 5
        toy.run()
        check_whole(toy)
        ticks = MemorySink.shown_ticks[toy.job.sinks["out"].name].values()
        assert all(shown == sorted(shown) for shown in ticks)
        if dying.left:
            break
    assert steps > 20


def test_where_a_source_began_stays_decided():
    """A topic that is read from its end: what comes before the next start is not skipped."""
    began = PlannedTick(3, (Chunk(0, None, 100), Chunk(1, None, 7)))
    read = PlannedTick(4, (Chunk(0, 100, 110),))
    again = PlannedTick(6, (Chunk(2, None, 7),))
    plan = TickPlan(ticks=(began, read, again))
    assert without_unreleased(plan, -1, -1) == (began,)
    assert without_unreleased(plan, -1, 4) == (began, read, again)
    assert without_unreleased(plan, 3, 3) == ()
    end = PlannedTick(3, (), is_end=True)
    assert without_unreleased(TickPlan(ticks=(end,)), -1, -1) == ()


def test_a_call_that_began_counts(tmp_path):
    """What the function did is not known, so its tick is replayed as it was planned."""
    seen = []

    def send(epoch, bucket, sent):
        seen.append(epoch)
        if len(seen) == 3:
            raise ValueError("no")

    toy = toy_of(tmp_path)
    made = cw.Flow("calls")
    made.sink("out", made.source("s0", Count))
    toy.job = replace(toy_job(made, tmp_path), sinks={"out": call(send)})
    put_lines(toy, "0000", *(f'{{"name":"{n}","count":1}}' for n in "abcdefghijkl"))
    with pytest.raises(CutwaterError, match="call-failed"):
        toy.run()
    before, failed = planned_of(newest_opening(tmp_path / "checkpoint")), seen[-1]
    run_killed(toy, 1)
    after = planned_of(newest_opening(tmp_path / "checkpoint"))
    assert after == {at: chunks for at, chunks in before.items() if at[1] <= failed}
    assert ("s0", failed) in after


# --- another flow


def mapped(f):
    made = cw.Flow("toy")
    made.sink("out", made.source("s0", Count).map(f, name="mapped"))
    made.sink("copy", made.source("s1", Count).map(f, name="copied"))
    return made


def same(item: Count) -> Count:
    return item


def failing(item: Count) -> Count:
    return Count(item.name, 1 // (item.count - 9))


def negative(item: Count) -> Count:
    return Count(item.name, -item.count)


class World:
    """A checkpoint that runs start on as `recovery` lets them."""

    def __init__(self, root):
        self.root = root
        self.checkpoint = RealTimeCheckpoint(root / "checkpoint")
        self.checkpoint.create()
        self.toy = ToyRealTime(self.job_of(same), random.Random(1), snapshot_ticks=NO_SNAPSHOT)
        self.told = []

    def job_of(self, f, **sinks):
        job = replace(toy_job(mapped(f), self.root), engine="realtime")
        return replace(job, sinks={**job.sinks, **sinks})

    def put(self, *counts):
        put_lines(self.toy, "0000", *(f'{{"name":"a","count":{count}}}' for count in counts))

    def run(self, f, kill_at=None, sinks=(), **asked):
        resumption = Resumption(partitions=2, **asked)
        job = self.job_of(f, **dict(sinks))
        job = recover(self.checkpoint, job, resumption, SPARK, self.told.append)
        self.toy.job = replace(job, generation=job.generation - 1)
        run_killed(self.toy, kill_at)

    def shown(self):
        return [row["count"] for row in rows(self.toy.job, "out")]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_a_step_that_failed_is_corrected_where_nothing_was_released(world):
    world.put(9)
    with pytest.raises(CutwaterError, match="step-failed"):
        world.run(failing)
    world.run(same)
    assert world.shown() == [9]
    assert world.told == []
    assert world.checkpoint.identity().code == identity_of(world.job_of(same), 2).code


def test_another_flow_is_refused_where_something_was_released_unless_it_is_reported(world):
    world.put(*range(20))
    run_until(same, world.shown, world.run)
    before, released = world.shown(), released_of(world.toy)
    planned = planned_of(newest_opening(world.root / "checkpoint"))
    assert 0 < len(before) < 20
    with pytest.raises(RefusedError) as refused:
        world.run(negative)
    [problem] = refused.value.problems
    assert problem.code == "changed-flow"
    assert "sink 'out' has released" in problem.message
    assert planned_of(newest_opening(world.root / "checkpoint")) == planned
    world.run(negative, kill_at=1, finish_with_this_flow=True)
    kept = planned_of(newest_opening(world.root / "checkpoint"))
    assert kept == {at: chunks for at, chunks in planned.items() if at[1] <= released}
    world.run(negative)
    assert sorted(map(abs, world.shown())) == list(range(20))
    assert world.shown()[: len(before)] == before
    assert min(world.shown()) < 0


def test_a_sink_that_cannot_be_asked_may_have_released_all(world, tmp_path):
    """It is bound elsewhere; then nothing is forgotten."""
    world.put(*range(20))
    run_until(same, lambda: world.toy.planned, world.run)
    planned = planned_of(newest_opening(world.root / "checkpoint"))
    assert world.shown() == []
    elsewhere = {"copy": MemorySink(f"{tmp_path}/elsewhere")}
    world.run(same, kill_at=1, sinks=elsewhere)
    assert planned_of(newest_opening(world.root / "checkpoint")) == planned
    world.run(same, sinks=elsewhere)
    assert sorted(world.shown()) == list(range(20))


def test_digests_of_forgotten_ticks_are_forgotten(tmp_path):
    """A digest notes rows of side outputs, too, which were not released with the tick."""
    toy = toy_of(tmp_path)
    put(toy.job, toy.random, 0, 12)
    run_killed(toy, 60)
    before, released = newest_opening(tmp_path / "checkpoint"), released_of(toy)
    log = DigestLog(before.digest_path(0, 0), -1)
    log.note(released + 1, 1)
    log.close()
    run_killed(toy, 1)
    log = DigestLog(newest_opening(tmp_path / "checkpoint").digest_path(0, 0), -1)
    assert released + 1 not in log._known
    log.close()
