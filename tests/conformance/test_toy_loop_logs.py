"""Loops that feed back through a log, a round an epoch: without a JVM, killed at named points."""

import shutil
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest
from support.spark.agreement import assert_agreement, by_input, expected, input_epochs
from support.spark.toy_spark import POINTS, Killed, ToySpark, make_job

import cutwater as cw
from cutwater.errors import CutwaterError, recover
from cutwater.flow.timely.cutting import loop_to_cut
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.job.spec import spark_plan
from cutwater.spark.support import check_support


@dataclass(frozen=True)
class Item:
    key: str
    at: int
    text: str


@cw.task(initial="")
def grown(whole: str, item: Item) -> tuple[str, list[Item]]:
    """Not commutative: the text of a key is what came, in order."""
    whole = (whole + item.text)[-12:]
    is_open = len(item.text) < 5 and len(whole) % 3 != 0
    return whole, [Item(item.key, item.at, item.text + whole[:2])] if is_open else []


@cw.task(initial="")
def told(whole: str, item: Item) -> tuple[str, list[Item]]:
    whole = (whole + item.text)[-7:]
    return whole, [Item(item.key, item.at, whole)]


def is_short(item: Item) -> bool:
    return len(item.text) < 4


def passed_on(item: Item) -> Item:
    return Item("abcde"[len(item.text) % 5], item.at, item.text)


def spread(item: Item) -> list[Item]:
    return [Item(key, item.at, item.text + key) for key in "ab" if len(item.text) < 3]


def exchanging(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    longer = stream.key_by("key", name="anew").apply(grown)
    return longer.map(passed_on).filter(is_short), longer


def exchanging_twice(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    longer = stream.key_by("key", name="by key").apply(grown).map(passed_on)
    again = longer.key_by("key", name="by new key").apply(told, name="told")
    return again.filter(is_short), longer.merge(again, name="both")


def spreading(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    """One event becomes several, in several buckets; a step without a key hears all."""
    more = stream.flat_map(spread, name="spread")
    heard = more.apply(told, name="heard").key_by("key", name="anew").apply(grown)
    return heard.filter(is_short), more


def doubled(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    """A stream that meets itself: copies of an event follow one another."""
    both = stream.merge(stream.map(passed_on, name="passed"), name="both")
    longer = both.key_by("key", name="anew").apply(grown)
    return longer.filter(is_short), longer


def in_each_round(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    """The end of a round is to an aggregate what that of an epoch is outside."""
    longer = stream.key_by("key", name="anew").apply(grown)
    keyed = stream.key_by("key", name="counting")
    counts = keyed.aggregate(count=cw.agg.count(), emit="epoch", name="counts")
    return longer.filter(is_short), counts.map(rounds_counted, name="as items")


def rounds_counted(counts: Any) -> str:
    return f"{counts.key}: {counts.count}"


def nested(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    """A loop in each key, in a loop over the keys."""

    def inner(own: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
        longer = own.apply(grown, name="inside")
        return longer.filter(is_short, name="inner again"), longer

    longer = stream.key_by("key", name="anew").iterate(inner, name="inner")
    return longer.map(passed_on).filter(is_short, name="again"), longer


def out_at_once(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    """All that comes in leaves, and so does all that goes round."""
    longer = stream.key_by("key", name="anew").apply(grown)
    return longer.filter(is_short), stream


BODIES = {
    "exchanging": exchanging,
    "exchanging twice": exchanging_twice,
    "spreading": spreading,
    "doubled": doubled,
    "in each round": in_each_round,
    "nested": nested,
    "out at once": out_at_once,
}
FILES = [
    [Item("abcde"[(3 * n + m) % 5], 2 * n + m % 3, "xyz"[m % 3] * (1 + m % 2)) for m in range(4)]
    for n in range(5)
]


def looping(body: Any, *, keyed: bool = True, plan: Any = None, more: Any = None, **times: Any):
    flow = cw.Flow("loops")
    settings = {"time": "at", "watermark": cw.bounded_delay(1)} | times
    items = flow.source("items", Item, **settings)
    flow.sink("beside", items.map(passed_on, name="beside"))
    left = (items.key_by("key") if keyed else items).iterate(body, plan=plan, name="loop")
    flow.sink("out", more(left) if more else left)
    return flow


def write(root: Any, files: Any = FILES) -> None:
    for number, items in enumerate(files):
        lines = b"".join(msgspec.json.encode(item) + b"\n" for item in items)
        (root / "in" / "items" / f"{number}").write_bytes(lines)


def run(root: Any, flow: cw.Flow, *, buckets: int = 2, kills: Any = (), size: int = 250) -> Any:
    check_support(spark_plan(flow))
    is_by_log = loop_to_cut(flow.steps) is not None
    settings = {"max_bytes_per_epoch": size, "permute": 3, "buckets": buckets}
    job = make_job(flow, root, feeds_back=True, **settings)
    assert bool(job.logs) == is_by_log
    write(root)
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        toy.run_to_the_end(list(kills), close=True)
    return agree(root, flow, toy)


def agree(root: Any, flow: cw.Flow, toy: ToySpark) -> Any:
    """What was shown for each input epoch is what the simulator shows."""
    numbers = input_epochs(toy.ends, ["items"])
    read = by_input(toy.offsets, numbers)
    wanted = expected(flow, root / "checkpoint", read, is_closed=True)
    folders = {name: toy.job.sinks[name].root for name in wanted}
    assert_agreement(wanted, folders, numbers=numbers)
    return wanted, toy, numbers


@pytest.mark.parametrize("keyed", [True, False], ids=["by key", "in one place"])
@pytest.mark.parametrize("body", BODIES)
def test_a_loop_by_a_log_shows_what_the_simulator_shows_for_each_input(tmp_path, body, keyed):
    shown = []
    for plan, buckets in (("log", 1), ("log", 2), ("log", 16), ("epoch", 2)):
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


def windowed(left: cw.Stream) -> cw.Stream:
    return left.key_by("key", name="of left").window(cw.tumbling(2)).aggregate(n=cw.agg.count())


def per_epoch(left: cw.Stream) -> cw.Stream:
    keyed = left.key_by("key", name="of left")
    return keyed.aggregate(n=cw.agg.count(), emit="epoch", name="n").map(str, name="n as text")


def concatenated(left: cw.Stream) -> cw.Stream:
    return left.apply(told, name="all that left")


def looped_again(left: cw.Stream) -> cw.Stream:
    """Of two loops one has the log."""
    return left.map(passed_on, name="passed again").iterate(
        lambda stream: second(stream), name="second"
    )


def second(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    longer = stream.key_by("key", name="second key").apply(told, name="second told")
    return longer.filter(lambda item: len(item.text) < 3, name="second again"), longer


BEHIND = {
    "windowed": windowed,
    "per epoch": per_epoch,
    "concatenated": concatenated,
    "looped again": looped_again,
}


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


def test_times_that_are_numbers_come_out_of_a_loop_as_they_went_in(tmp_path):
    flow = looping(
        exchanging, plan="log", time=None, watermark=None, more=lambda left: left.map_values(at)
    )
    wanted, _, _ = run(tmp_path, flow)
    assert any(wanted["out"])


def at(time: int, item: Item) -> str:
    return f"{time}: {item.text}"


def begun(root: Any, epochs: int, patch: Any) -> ToySpark:
    """A run after some epochs."""
    job = make_job(looping(exchanging), root, feeds_back=True, max_bytes_per_epoch=250, buckets=2)
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
        logs = [log.name for log in toy.job.logs]
        others = [name for name in toy.job.sinks if name not in logs]
        sinks = {name: toy.job.sinks[name] for name in [*logs, *others]}
        toy.go_on(replace(toy.job, sinks=sinks))
        with pytest.raises(Killed):
            toy.run("half published")
        toy.start()
        toy.run_to_the_end([], close=True)
    agree(tmp_path, flow, toy)


@pytest.mark.parametrize("epochs", range(1, 8))
def test_an_epoch_without_input_as_rescaling_leaves_it_changes_nothing(tmp_path, epochs):
    with pytest.MonkeyPatch.context() as patch:
        toy = begun(tmp_path, epochs, patch)
        toy.skip_epoch()
        toy.start()
        toy.run_to_the_end([], close=True)
    agree(tmp_path, looping(exchanging), toy)


def test_a_round_that_is_gone_is_missed(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        toy = begun(tmp_path, 1, patch)
        again = toy.job.sinks[toy.job.logs[0].name]
        shutil.rmtree(again.directory(0))
        with pytest.raises(RuntimeError) as caught:
            toy.run()
    (problem,) = recover(str(caught.value)).problems
    assert "is damaged: it is gone, and no epoch has read it yet" in problem.message


def test_a_run_that_was_overtaken_plans_no_round(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        toy = begun(tmp_path, 1, patch)
        patch.setattr(Checkpoint, "generation", lambda _self: 2)
        with pytest.raises(RuntimeError) as caught:
            toy.run()
    assert "generation 2 has taken the checkpoint" in str(recover(str(caught.value)))


def test_the_log_holds_no_more_than_what_may_be_read_again(tmp_path):
    flow = looping(exchanging, plan="log")
    _, toy, numbers = run(tmp_path, flow, size=1)
    again, left = (toy.job.sinks[log.name].published() for log in toy.job.logs)
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
    again, left = (log.name for log in toy.job.logs)
    before = {name: {"entry": 0} for name in ("items", again, left)}
    for end in toy.ends:
        moved = [name for name in end if end[name] != before[name]]
        assert len(moved) == 1, "an epoch reads the sources, or what was fed back, or what left"
        before = end
    assert moved == [left], "a run has caught up when all that left is shown"


def test_a_bound_that_is_reached_is_said(tmp_path):
    def endless(stream: cw.Stream) -> cw.Stream:
        return stream.key_by("key", name="anew").map(passed_on)

    flow = cw.Flow("endless")
    items = flow.source("items", Item, time="at")
    flow.sink("out", items.iterate(endless, max_rounds=3, name="loop"))
    job = make_job(flow, tmp_path, feeds_back=True, max_bytes_per_epoch=10_000)
    assert job.logs
    write(tmp_path, FILES[:1])
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        for _ in range(2):  # and again after a restart
            with pytest.raises(RuntimeError) as caught:
                toy.run_to_the_end([])
            (problem,) = recover(str(caught.value)).problems
            assert "has turned 3 rounds, its max_rounds, and 4 values still go" in problem.message
            toy.start()
    assert len(toy.ends) == 3
    with pytest.raises(CutwaterError, match="has turned 3 rounds, its max_rounds, and 4 values"):
        cw.simulate(flow, {"items": FILES[0]})


def test_a_bound_that_is_not_reached_is_not_said(tmp_path):
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
