"""Input epochs that overlap in a loop by a log: without a JVM, killed at named points."""

from typing import Any

import pytest
from support.flows.items_in_loops import (
    AT_ONCE,
    BEHIND,
    BODIES,
    Item,
    agree,
    exchanging,
    exchanging_twice,
    inside,
    looping,
    run,
    shorter,
    write,
)
from support.spark.agreement import (
    leaves_in,
)
from support.spark.toy_spark import POINTS, ToySpark, make_job

import cutwater as cw
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.state_reader import rows_of_log
from cutwater.spark.microbatch import loop_plan
from cutwater.spark.state.changelog import HEAD_KEY

EVERY_CELL = [
    *(("log", room, buckets) for room in (1, 2, 8) for buckets in (1, 2, 16)),
    *(("epoch", 8, buckets) for buckets in (1, 2, 16)),
]
SOME_CELLS = [("log", 8, 1), ("log", 8, 2), ("log", 2, 16), ("log", 1, 2), ("epoch", 8, 2)]


@pytest.mark.parametrize("keyed", [True, False], ids=["by key", "in one place"])
@pytest.mark.parametrize("body", BODIES)
def test_input_epochs_that_overlap_show_what_they_show_apart(tmp_path, body, keyed):
    """States are those of the input epoch. The bodies are not commutative.

    For one of them each cell: both plans, 1, 2 and 16 buckets, and with room in the loop for one,
    two and eight input epochs; for the others each plan, number and room once.
    """
    shown, most = [], {}
    for plan, room, buckets in EVERY_CELL if body == "exchanging twice" else SOME_CELLS:
        flow = looping(BODIES[body], keyed=keyed, plan=plan, state_per_epoch=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop_plan, "MAX_INPUT_EPOCHS", room)
            wanted, toy, _ = run(tmp_path / f"{plan}{room}-{buckets}", flow, buckets=buckets)
        most[plan, room] = max(inside(toy)) if plan == "log" else 0
        shown.append(wanted)
    assert all(each == shown[0] for each in shown)
    assert most["log", 1] == 1
    assert most["log", 2] == (1 if body in AT_ONCE else 2)
    assert most["log", 8] >= most["log", 2]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("body", BODIES)
def test_a_kill_at_any_point_while_input_epochs_overlap_changes_nothing(tmp_path, body, point):
    flow = looping(BODIES[body], plan="log", state_per_epoch=True)
    kills = ["never", point, point, "never", point, "never", point, point, "never", point]
    _, toy, _ = run(tmp_path, flow, kills=kills)
    assert max(inside(toy)) > 1 or body in AT_ONCE


@pytest.mark.parametrize("point", POINTS[:-1])
def test_a_kill_in_each_epoch_while_input_epochs_overlap_changes_nothing(tmp_path, point):
    flow = looping(exchanging_twice, plan="log", state_per_epoch=True, more=BEHIND["windowed"])
    run(tmp_path, flow, kills=[point, point, "never"] * 40)


@pytest.mark.parametrize("kill", ["never", "logged", "published"])
@pytest.mark.parametrize("more", ["windowed", "per epoch", "concatenated", "looped again"])
def test_what_reads_a_loop_cannot_tell_that_input_epochs_overlap(tmp_path, more, kill):
    flow = looping(exchanging, plan="log", more=BEHIND[more], state_per_epoch=True)
    wanted, toy, _ = run(tmp_path, flow, kills=["never", kill, "never", "never", kill] * 4)
    assert any(wanted["out"])
    assert max(inside(toy)) > 1


def test_an_input_epoch_is_over_while_an_older_one_and_a_younger_one_turn(tmp_path):
    """They leave in their order, and the states of each go with it."""

    def countdown(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
        counted = stream.key_by("key", name="anew").apply(met, name="met")
        return counted.flat_map(shorter, name="shorter"), counted

    files = [[Item("a", n, "x" * length)] for n, length in enumerate((9, 2, 5, 1, 7))]
    flow = looping(countdown, plan="log", state_per_epoch=True)
    job = make_job(flow, tmp_path, feeds_back=True, max_bytes_per_epoch=1, buckets=2)
    write(tmp_path, files)
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        toy.run_to_the_end([], close=True)
        agree(tmp_path, flow, toy)
        left = [end[toy.job.loops.logs[1].name] for end in toy.ends]
        found = (leaves_in(toy.ends, epoch) for epoch in range(len(toy.ends)))
        leaving = [number for number in found if number >= 0]
        assert leaving[:-1] == [0, 1, 2, 3, 4], "and then the end of the input"
        assert any(
            is_inside(each, 0, 5) and is_inside(each, 1, 2, 2) and is_inside(each, 2, 3)
            for each in left
        )
    assert not list(states_of(toy, "met")), "what is over has no state"


def states_of(toy: ToySpark, step: str) -> list[dict[str, Any]]:
    """As `cutwater state` reads them."""
    kept = identity_of(toy.job, 2).steps[step]
    found = []
    for group in toy.states.values():
        entries = {key: data for (key,), (data,) in group.log.items.items() if key != HEAD_KEY}
        found += rows_of_log(entries, step, kept, set())
    return found


@pytest.mark.parametrize("state_per_epoch", [True, False])
def test_the_state_of_a_loop_in_mid_turn_is_read(tmp_path, state_per_epoch):
    flow = looping(exchanging, plan="log", state_per_epoch=state_per_epoch)
    job = make_job(flow, tmp_path, feeds_back=True, max_bytes_per_epoch=1, buckets=2)
    write(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        for _ in range(3):
            assert toy.run()
        found = states_of(toy, "grown")
    assert {type(row["state"]) for row in found} == {str}
    inputs = {row.get("input_epoch") for row in found}
    assert inputs == ({1, 2} if state_per_epoch else {None}), "the first has left"


@cw.task(initial="")
def met(whole: str, item: Item) -> tuple[str, list[Item]]:
    """Some are told twice, by how many came before."""
    is_second = bool(whole) and len(item.text) < 3
    return whole + "." if len(whole) < 2 else "", [item] * (1 + is_second)


def is_inside(left: Any, number: int, least: int, most: int = 99) -> bool:
    """Is an input epoch in the loop, and is its newest round one of these?"""
    rounds = [each["round"] for each in left.get("in the loop", ()) if each["number"] == number]
    return bool(rounds) and least <= rounds[0] <= most


def test_a_body_that_keeps_nothing_overlaps_without_being_told_to(tmp_path):
    def onward(stream: cw.Stream) -> cw.Stream:
        return stream.key_by("key", name="anew").flat_map(shorter, name="shorter")

    _, toy, _ = run(tmp_path, looping(onward, plan="log"))
    assert max(inside(toy)) > 1
