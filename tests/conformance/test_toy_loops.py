"""Loops on our runtime without a JVM, killed at named points, against the simulator."""

from typing import Any

import msgspec
import pytest
from support.flows.telling import Item, telling, telling_in_three
from support.spark.agreement import assert_agreement, expected
from support.spark.toy_spark import POINTS, ToySpark, make_job

import cutwater as cw
from cutwater.spark.job.spec import spark_plan
from cutwater.spark.support import check_support


@cw.task(initial="")
def grown(whole: str, item: Item) -> tuple[str, list[Item]]:
    """Not commutative: the text of a key is what came, in order."""
    whole = (whole + item.text)[-12:]
    is_open = len(item.text) < 5 and len(whole) % 3 != 0
    return whole, [Item(item.key, item.at, item.text + whole[:2])] if is_open else []


def is_short(item: Item) -> bool:
    return len(item.text) < 4


def growing(source: cw.Stream) -> cw.Stream:
    def body(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
        longer = stream.apply(grown)
        return longer.filter(is_short), longer

    return source.iterate(body, name="grow")


def joined(a: Item, b: Item) -> Item:
    return Item(a.key, a.at, a.text + b.text)


def joining(source: cw.Stream) -> cw.Stream:
    def body(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
        short = stream.filter(is_short, name="short")
        pairs = short.join(stream, joined, name="pairs")
        return pairs.filter(is_short, name="again"), pairs

    return source.iterate(body, name="join")


def passed_on(item: Item) -> Item:
    return Item("abcde"[len(item.text) % 5], item.at, item.text)


def exchanging(source: cw.Stream) -> cw.Stream:
    """What goes round changes its key; in one place, whatever the stream was keyed by."""

    def body(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
        longer = stream.key_by("key", name="anew").apply(grown)
        return longer.map(passed_on).filter(is_short), longer

    return source.iterate(body, name="grow")


LOOPS = {
    "growing": growing,
    "telling": telling,
    "telling in three": telling_in_three,
    "joining": joining,
    "exchanging": exchanging,
}
FILES = [
    [Item("abcde"[(3 * n + m) % 5], 2 * n + m % 3, "xyz"[m % 3] * (1 + m % 2)) for m in range(4)]
    for n in range(5)
]


def run(root: Any, loop: Any, *, keyed: bool, buckets: int, kills: list[str]) -> Any:
    flow = cw.Flow("loops")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(1))
    flow.sink("out", loop(items.key_by("key") if keyed else items))
    check_support(spark_plan(flow))
    job = make_job(flow, root, max_bytes_per_epoch=1, permute=3, buckets=buckets)
    for number, items in enumerate(FILES):
        lines = b"".join(msgspec.json.encode(item) + b"\n" for item in items)
        (root / "in" / "items" / f"{number}").write_bytes(lines)
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        toy.run_to_the_end(kills, close=True)
    wanted = expected(flow, root / "checkpoint", toy.offsets, is_closed=True)
    assert any(wanted["out"])
    assert_agreement(wanted, {"out": job.sinks["out"].root})
    return wanted["out"]


@pytest.mark.parametrize("keyed", [True, False], ids=["by key", "in one place"])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_shows_what_the_simulator_shows_in_each_epoch(tmp_path, loop, keyed):
    shown = [
        run(tmp_path / str(buckets), LOOPS[loop], keyed=keyed, buckets=buckets, kills=[])
        for buckets in (1, 2, 16)
    ]
    assert shown[0] == shown[1] == shown[2]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_kill_at_any_point_changes_nothing(tmp_path, loop, point):
    kills = ["never", point, "never", point]
    assert run(tmp_path, LOOPS[loop], keyed=True, buckets=2, kills=kills)
