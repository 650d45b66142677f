"""Items that go round in loops by a log, and runs of them without a JVM."""

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from support.spark.agreement import (
    assert_agreement,
    by_input,
    expected,
    input_epochs,
    input_epochs_shown,
)
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.flow.timely.cutting import loop_to_cut
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
AT_ONCE = {"spreading"}
"""With states that begin anew, these iterate nothing."""
FILES = [
    [Item("abcde"[(3 * n + m) % 5], 2 * n + m % 3, "xyz"[m % 3] * (1 + m % 2)) for m in range(4)]
    for n in range(5)
]


def looping(
    body: Any,
    *,
    keyed: bool = True,
    plan: Any = None,
    more: Any = None,
    state_per_epoch: bool = False,
    **times: Any,
) -> cw.Flow:
    flow = cw.Flow("loops")
    settings = {"time": "at", "watermark": cw.bounded_delay(1)} | times
    items = flow.source("items", Item, **settings)
    flow.sink("beside", items.map(passed_on, name="beside"))
    entering = items.key_by("key") if keyed else items
    left = entering.iterate(body, plan=plan, state_per_epoch=state_per_epoch, name="loop")
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
    assert bool(job.loops.logs) == is_by_log
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
    shown = dict.fromkeys(wanted, numbers)
    if toy.job.loops.logs:
        shown["out"] = input_epochs_shown(toy.ends, ["items"])
    for name, epochs in wanted.items():
        assert_agreement({name: epochs}, {name: toy.job.sinks[name].root}, numbers=shown[name])
    return wanted, toy, numbers


def inside(toy: ToySpark) -> list[int]:
    """For each epoch how many input epochs are in the loop when it is planned."""
    left = (end[toy.job.loops.logs[1].name] for end in toy.ends)
    return [len(each.get("in the loop", ())) + ("leaves" in each) for each in left]


def shorter(item: Item) -> list[Item]:
    return [Item("abcde"[len(item.text) % 5], item.at, item.text[1:])] if item.text else []


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
