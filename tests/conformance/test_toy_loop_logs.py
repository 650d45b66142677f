"""Loops that feed back through a log, killed at named points.

One iteration runs per epoch, without a JVM.
"""

import itertools
import shutil
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from support.flows.items_in_loops import (
    BEHIND,
    BODIES,
    FILES,
    Item,
    agree,
    exchanging,
    exchanging_twice,
    looping,
    passed_on,
    run,
    shorter,
    told,
    write,
)
from support.spark.agreement import (
    assert_agreement,
    by_input,
    expected,
    input_epochs,
    input_epochs_shown,
    leaves_in,
)
from support.spark.toy_spark import POINTS, Killed, ToySpark, make_job

import cutwater as cw
from cutwater.errors import CutwaterError, extract
from cutwater.spark.checkpoint.store import Checkpoint


@pytest.mark.parametrize("keyed", [True, False], ids=["by key", "in one place"])
@pytest.mark.parametrize("body", BODIES)
def test_a_loop_by_a_log_shows_what_the_simulator_shows_for_each_input(tmp_path, body, keyed):
    shown = []
    for plan, buckets in itertools.product(("log", "epoch"), (1, 2, 16)):
        flow = looping(BODIES[body], keyed=keyed, plan=plan)
        wanted, _, numbers = run(tmp_path / f"{plan}{buckets}", flow, buckets=buckets)
        assert any(wanted["out"])
        assert (len(set(numbers)) < len(numbers)) == (plan == "log")
        shown.append(wanted)
    assert all(each == shown[0] for each in shown)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("body", BODIES)
def test_a_kill_at_any_point_of_any_phase_changes_nothing(tmp_path, body, point):
    flow = looping(BODIES[body], plan="log")
    kills = ["never", point, point, "never", point, "never", "never", "never", point, point]
    assert run(tmp_path, flow, kills=kills)


@pytest.mark.parametrize("point", POINTS[:-1])
def test_a_kill_in_each_epoch_changes_nothing(tmp_path, point):
    """Also twice in the same one."""
    flow = looping(exchanging_twice, plan="log")
    run(tmp_path, flow, kills=[point, point, "never"] * 40)


@pytest.mark.parametrize("kill", ["never", "logged", "published"])
@pytest.mark.parametrize("more", BEHIND)
def test_what_reads_a_loop_cannot_tell_a_round_from_an_epoch(tmp_path, more, kill):
    flow = looping(exchanging, plan="log", more=BEHIND[more])
    wanted, _, _ = run(tmp_path, flow, kills=["never", kill, "never", "never", kill] * 4)
    assert any(wanted["out"])


def last_of(batch: tuple[tuple[int, Item], ...]) -> list[Item]:
    return [item for _, item in batch]


def batched(items: cw.Stream) -> cw.Stream:
    """What is held back until its time is complete, and at last until the input ends."""
    return items.batch(name="batch").flat_map(last_of, name="last")


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("more", ["windowed", "concatenated"])
def test_what_the_end_of_the_input_lets_go_turns_too(tmp_path, more, point):
    flow = cw.Flow("loops")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(3))
    left = batched(items).iterate(exchanging, plan="log", name="loop")
    flow.sink("out", BEHIND[more](left))
    kills = ["never"] * 8 + [point, "never", point, point, "never", point, "never"] * 2
    wanted, _, numbers = run(tmp_path, flow, kills=kills)
    assert wanted["out"][-1], "the end lets something go"
    assert numbers.count(numbers[-1]) > 2, "which goes round"


def last_by_both(batch: tuple[tuple[cw.Product, Item], ...]) -> list[Item]:
    return [item for _, item in batch]


def paired(a: Item, b: Item) -> Item:
    return Item(a.key, a.at, (a.text + b.text)[:2])


@pytest.mark.parametrize("state_per_epoch", [True, False])
@pytest.mark.parametrize("kill", ["never", "logged", "half published"])
def test_a_loop_behind_two_clocks_is_complete_by_both(tmp_path, kill, state_per_epoch):
    flow = cw.Flow("loops")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(1)).key_by("key")
    others = flow.source("others", Item, time="at", watermark=cw.bounded_delay(1))
    pairs = items.join_clocks(
        others.key_by("key", name="other key"), paired, unbounded=True, name="pairs"
    )
    left = pairs.iterate(exchanging, plan="log", state_per_epoch=state_per_epoch, name="loop")
    flow.sink("out", left.batch(name="batch").flat_map(last_by_both, name="last"))
    job = make_job(flow, tmp_path, feeds_back=True, max_bytes_per_epoch=250, buckets=2)
    write(tmp_path)
    for number, batch in enumerate(FILES[::-1]):
        lines = b"".join(msgspec.json.encode(replace(i, at=number)) + b"\n" for i in batch)
        (tmp_path / "in" / "others" / str(number)).write_bytes(lines)
    names = ["items", "others"]
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        toy.run_to_the_end(["never", kill, "never", kill, kill] * 3, close=True)
    read = by_input(toy.offsets, input_epochs(toy.ends, names))
    wanted = expected(flow, tmp_path / "checkpoint", read, is_closed=True)
    assert sum(map(bool, wanted["out"])) > 2, "times are complete before the end"
    shown = input_epochs_shown(toy.ends, names)
    assert_agreement(wanted, {"out": toy.job.sinks["out"].root}, numbers=shown)


def test_times_that_are_numbers_come_out_of_a_loop_as_they_went_in(tmp_path):
    flow = looping(
        exchanging, plan="log", time=None, watermark=None, more=lambda left: left.map_values(at)
    )
    wanted, _, _ = run(tmp_path, flow)
    assert any(wanted["out"])


def at(time: int, item: Item) -> str:
    return f"{time}: {item.text}"


def begun(root: Any, epochs: int, patch: Any, flow: cw.Flow | None = None) -> ToySpark:
    """A run after some epochs."""
    flow = flow or looping(exchanging)
    job = make_job(flow, root, feeds_back=True, max_bytes_per_epoch=1, buckets=2)
    write(root)
    toy = ToySpark(job, patch, 1)
    for _ in range(epochs):
        assert toy.run()
    return toy


@pytest.mark.parametrize("epochs", range(1, 8))
def test_an_epoch_of_which_only_the_logs_were_sealed_is_run_again(tmp_path, epochs):
    flow = looping(exchanging)
    with pytest.MonkeyPatch.context() as patch:
        toy = begun(tmp_path, epochs, patch)
        logs = [log.name for log in toy.job.loops.logs]
        others = [name for name in toy.job.sinks if name not in logs]
        sinks = {name: toy.job.sinks[name] for name in [*logs, *others]}
        toy.go_on(replace(toy.job, sinks=sinks))
        with pytest.raises(Killed):
            toy.run("half published")
        toy.start()
        toy.run_to_the_end([], close=True)
    agree(tmp_path, flow, toy)


def steadily(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    """As many rounds as letters."""
    told_in_order = stream.key_by("key", name="anew").apply(told, name="told")
    return stream.flat_map(shorter, name="shorter"), told_in_order


@pytest.mark.parametrize("state_per_epoch", [True, False])
@pytest.mark.parametrize("epochs", range(1, 8))
def test_moving_the_state_to_other_partitions_in_any_round_changes_nothing(
    tmp_path, epochs, state_per_epoch
):
    """It leaves an epoch that reads nothing."""
    flow = looping(steadily, state_per_epoch=state_per_epoch)
    with pytest.MonkeyPatch.context() as patch:
        toy = begun(tmp_path, epochs, patch, flow)
        toy.skip_epoch(partitions=3)
        toy.start()
        toy.run_to_the_end([], close=True)
    agree(tmp_path, flow, toy)


@pytest.mark.parametrize("state_per_epoch", [True, False])
def test_a_run_without_new_input_empties_the_loop_that_the_one_before_left_turning(
    tmp_path, state_per_epoch
):
    """What `until="caught-up"` means of a log that is not empty."""
    flow = looping(steadily, state_per_epoch=state_per_epoch)
    job = make_job(flow, tmp_path, feeds_back=True, max_bytes_per_epoch=10_000, buckets=2)
    write(tmp_path, FILES[:1])
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        assert toy.run()
        before = toy.ends[-1]
        toy.start()
        toy.run_to_the_end([])
        after = toy.ends[-1]
        toy.run_to_the_end([], close=True)
    again, left = (log.name for log in toy.job.loops.logs)
    assert after["items"] == before["items"], "all input had been read before"
    assert after[again] != before[again]
    assert not after[left].get("in the loop")
    agree(tmp_path, flow, toy)


@pytest.mark.parametrize("state_per_epoch", [True, False])
@pytest.mark.parametrize("epochs", range(1, 8))
def test_a_power_loss_after_the_next_epoch_was_planned_loses_nothing(
    tmp_path, epochs, state_per_epoch
):
    """Spark forgets that the newest epoch was committed; logs and sinks have it, being synced."""
    flow = looping(steadily, state_per_epoch=state_per_epoch)
    with pytest.MonkeyPatch.context() as patch:
        toy = begun(tmp_path, epochs - 1, patch, flow)
        toy.run_and_forget()
        with pytest.raises(Killed):
            toy.run("planned")
        toy.lose_newest_epoch()
        toy.start()
        toy.run_to_the_end([], close=True)
    agree(tmp_path, flow, toy)


def test_a_round_that_is_gone_is_missed(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        toy = begun(tmp_path, 1, patch)
        again = toy.job.sinks[toy.job.loops.logs[0].name]
        shutil.rmtree(again.directory(0))
        with pytest.raises(RuntimeError) as caught:
            toy.run()
    (problem,) = extract(str(caught.value)).problems
    assert "is damaged: it is missing, and no epoch has read it yet" in problem.message


def test_a_run_that_was_overtaken_plans_no_round(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        toy = begun(tmp_path, 1, patch)
        patch.setattr(Checkpoint, "generation", lambda _self: 2)
        with pytest.raises(RuntimeError) as caught:
            toy.run()
    assert "generation 2 has taken the checkpoint" in str(extract(str(caught.value)))


def test_the_log_holds_no_more_than_what_may_be_read_again(tmp_path):
    flow = looping(exchanging, plan="log")
    _, toy, numbers = run(tmp_path, flow, size=1)
    again, left = (toy.job.sinks[log.name].published() for log in toy.job.loops.logs)
    assert len(numbers) > 20
    assert len(again) <= 2
    assert len(left) <= numbers.count(numbers[-2]) + numbers.count(numbers[-3])


def test_new_input_waits_until_the_loop_is_empty(tmp_path):
    flow = looping(exchanging, plan="log")
    job = make_job(flow, tmp_path, feeds_back=True, max_bytes_per_epoch=1, buckets=2)
    write(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        toy.run_to_the_end([])
    again, left = (log.name for log in toy.job.loops.logs)
    before = {"items": {"entry": 0}, again: {"entry": 0}, left: {}}
    for epoch, end in enumerate(toy.ends):
        moved = [name for name in ("items", again) if end[name] != before[name]]
        moved += [left] * (leaves_in(toy.ends, epoch) >= 0)
        assert len(moved) == 1, "an epoch reads the sources, or what was fed back, or what left"
        before = end
    assert moved == [left], "a run has caught up when all that left is shown"


def test_a_bound_that_is_reached_is_reported(tmp_path):
    def endless(stream: cw.Stream) -> cw.Stream:
        return stream.key_by("key", name="anew").map(passed_on)

    flow = cw.Flow("endless")
    items = flow.source("items", Item, time="at")
    flow.sink("out", items.iterate(endless, max_rounds=3, name="loop"))
    job = make_job(flow, tmp_path, feeds_back=True, max_bytes_per_epoch=10_000)
    assert job.loops.logs
    write(tmp_path, FILES[:1])
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        for _ in range(2):  # and again after a restart
            with pytest.raises(RuntimeError) as caught:
                toy.run_to_the_end([])
            (problem,) = extract(str(caught.value)).problems
            assert (
                "has run 3 iterations, its max_rounds, and still feeds back 4 values"
                in problem.message
            )
            toy.start()
    assert len(toy.ends) == 3
    with pytest.raises(
        CutwaterError, match="has run 3 iterations, its max_rounds, and still feeds back 4 values"
    ):
        cw.simulate(flow, {"items": FILES[0]})


def test_a_bound_that_is_not_reached_is_not_reported(tmp_path):
    flow = cw.Flow("loops")
    items = flow.source("items", Item, time="at")
    flow.sink("out", items.iterate(exchanging, max_rounds=6, name="loop"))
    _, _, numbers = run(tmp_path, flow)
    assert max(map(numbers.count, numbers)) <= 7
    assert len(set(numbers)) > 3, "rounds are counted anew for each input"


def test_a_kill_before_anything_was_planned_is_told_from_one_after(tmp_path):
    """The toy is killed where it is told to be."""
    job = make_job(looping(exchanging), tmp_path, feeds_back=True)
    write(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        with pytest.raises(Killed):
            toy.run("planned")
        assert toy.ends == []
