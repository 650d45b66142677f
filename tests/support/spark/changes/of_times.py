"""Changes of times, windows and aggregates, and of the whole."""

from dataclasses import dataclass
from typing import Any

from support.spark.changes.of_types import Short
from support.spark.changes.script import (
    ANEW,
    A,
    B,
    Flows,
    Item,
    Line,
    a,
    b,
    changed,
    changed_step,
    count,
    counting,
    doubled,
    refused,
    refused_somehow,
    runs,
    total,
)

import cutwater as cw
from cutwater import agg
from cutwater.spark.checkpoint.compatibility import CHECKPOINT_FORMAT
from cutwater.spark.storage.durable import read_json, write_json


def windowed(window=None, delay=0, late="keep", time="at", watermark=True) -> cw.Flow:
    flow = cw.Flow("flow")
    rule = cw.bounded_delay(delay) if watermark else None
    items = flow.source("items", Item, time=time, watermark=rule, late=late)
    windows = items.key_by("name").window(window or cw.tumbling(10))
    flow.sink("out", windows.aggregate(n=agg.count()))
    return flow


def at(time: int) -> Line:
    return {"name": "a", "size": 1, "at": time}


def window(start: int, n: int) -> Line:
    return {"name": "a", "window_start": start, "window_end": start + 10, "n": n}


def holding_beside() -> cw.Flow:
    flow = cw.Flow("flow")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(0))
    flow.sink("out", items.key_by("name").apply(count))
    flow.sink("held", items.batch())
    return flow


@cw.task(initial=0)
def numbered(seen: int, item: Short) -> tuple[int, list[int]]:
    return seen + 1, [seen + 1]


def holding_numbers(name: str | None) -> cw.Flow:
    flow = cw.Flow("flow")
    items = flow.source("items", Short)
    flow.sink("out", items.key_by("name").apply(numbered))
    if name:
        flow.sink("held", items.batch(name=name))
    return flow


TIMES: dict[str, list[Any]] = {
    "The delay of a watermark made shorter": [
        runs(windowed(delay=10), at(5), at(12), shows=[]),
        # what is complete by the new delay is complete at once: 3 is late
        runs(
            windowed(delay=0),
            at(3),
            at(20),
            shows={"out": [window(0, 1), window(10, 1)], "late events: items": [at(3)]},
        ),
    ],
    "The delay of a watermark made longer": [
        runs(windowed(delay=1), at(5), at(12)),
        refused(
            windowed(delay=10),
            changed(
                "the delay of the watermark of source 'items' was 1 and is 10; what was complete "
                "would be open again",
                f"put it back as it was, or make it shorter, or {ANEW}",
            ),
        ),
    ],
    "A watermark added or removed": [
        runs(windowed(), at(5)),
        refused_somehow(
            windowed(watermark=False), changed("source 'items' had a watermark and has none")
        ),
    ],
    "A watermark added": [
        runs(windowed(watermark=False), at(5)),
        refused_somehow(windowed(), changed("source 'items' had no watermark and has one")),
    ],
    "The time of a source changed": [
        runs(windowed(), at(5)),
        refused(
            windowed(time="size"),
            changed(
                "the times of source 'items' were at: int and are size: int",
                f"put them back as they were, or {ANEW}",
            ),
        ),
    ],
    "Times that no step used before": [
        runs(counting(), A),
        runs(holding_beside(), at(5), at(9), shows=[a(2), a(3)]),
        runs(holding_beside(), at(10), shows={"held": [[[9, at(9)]]]}),
    ],
    # They do not begin again: buckets may remember that they were complete.
    "Numbers that no step uses for a while": [
        runs(
            holding_numbers("one"),
            A,
            A,
            shows={"held": [[[0, {"name": "a"}], [1, {"name": "a"}]]]},
        ),
        runs(holding_numbers(None), A, forget=["one"]),
        runs(holding_numbers("two"), A, shows={"out": [4], "held": [[[2, {"name": "a"}]]]}),
    ],
    "The late policy changed": [
        runs(windowed(), at(5), at(12)),
        runs(windowed(late="drop"), at(15), at(20), shows=[window(10, 2)]),
    ],
    "The size of windows changed": [
        runs(windowed(), at(5)),
        refused(
            windowed(cw.tumbling(20)),
            changed_step(
                "window",
                "step 'window' kept Sliding(size=10, every=10, offset=None) of count() and keeps "
                "Sliding(size=20, every=20, offset=None) of count()",
            ),
        ),
    ],
}


# --- aggregates ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Weighed:
    name: str
    size: float = 0.0
    at: int = 0


@cw.task(initial=0)
def rows_seen(seen: int, _row: Any) -> tuple[int, list[int]]:
    return seen + 1, [seen + 1]


def aggregated(emit="event", type=Item, behind=(), **by) -> cw.Flow:
    flow = cw.Flow("flow")
    stream = flow.source("items", type).key_by("name").aggregate(emit=emit, **by)
    for task in behind:
        stream = stream.apply(task)
    flow.sink("out", stream)
    return flow


def kept(before: str, now: str) -> str:
    return changed_step("aggregate", f"step 'aggregate' kept {before} and keeps {now}")


AGGREGATES: dict[str, list[Any]] = {
    "A field that an aggregate reads retyped": [
        runs(aggregated(m=agg.sum("size")), A),
        refused(
            aggregated(type=Weighed, m=agg.sum("size")),
            changed_step(
                "aggregate",
                "a part of a part of the state of step 'aggregate' was int and is float",
            ),
        ),
    ],
    # The two are one chain, in which nothing is kept in columns.
    "A task added behind an aggregate": [
        runs(aggregated(m=agg.sum("size")), A),
        refused(
            aggregated(behind=[rows_seen], m=agg.sum("size")),
            changed_step(
                "aggregate",
                "the state of step 'aggregate' was kept in columns and is kept key by key",
            ),
        ),
    ],
    "An aggregate added": [
        runs(aggregated(n=agg.count()), A),
        refused(
            aggregated(n=agg.count(), m=agg.sum("size")), kept("count()", "count(), sum(size)")
        ),
    ],
    "An aggregate removed": [
        runs(aggregated(n=agg.count(), m=agg.sum("size")), A),
        refused(aggregated(n=agg.count()), kept("count(), sum(size)", "count()")),
    ],
    "An aggregate changed": [
        runs(aggregated(m=agg.min("size")), A),
        refused(aggregated(m=agg.max("size")), kept("min(size)", "max(size)")),
        refused(aggregated(m=agg.min("at")), kept("min(size)", "min(at)")),
    ],
    "An aggregate renamed": [
        runs(aggregated(n=agg.count()), A),
        runs(aggregated(m=agg.count()), A, shows=[{"name": "a", "m": 2}]),
    ],
    "An aggregate per event made one per epoch": [
        runs(aggregated(n=agg.count()), A, A),
        runs(aggregated(emit="epoch", n=agg.count()), A, A, shows=[{"name": "a", "n": 4}]),
    ],
}


# --- the whole ----------------------------------------------------------------------------------


def of_an_older_format(flows: Flows) -> None:
    path = flows.checkpoint.root / "cutwater.json"
    write_json(path, {**read_json(path, "it"), "format": CHECKPOINT_FORMAT - 1})


WHOLE: dict[str, list[Any]] = {
    "The number of partitions changed": [
        runs(counting(), A),
        refused(
            counting(),
            "[other-partitions] the checkpoint has 2 partitions, and 4 were asked for; a run "
            "does not rescale the state\n  hint: leave the number out, or stop the flow and "
            "rescale: cutwater checkpoint rescale CHECKPOINT --partitions 4",
            partitions=4,
        ),
        runs(counting(), A, shows=[a(2)], partitions=2),
    ],
    "The flow renamed": [
        runs(counting(), A),
        refused(counting(flow="other"), changed("its name was 'flow' and is 'other'")),
    ],
    "A checkpoint of an older format": [
        runs(counting(), A),
        of_an_older_format,
        refused(
            counting(),
            f"[checkpoint-format] the checkpoint FOLDER/checkpoint has format "
            f"{CHECKPOINT_FORMAT - 1}; this version reads format {CHECKPOINT_FORMAT}\n  hint: use "
            f"the version that wrote it, or {ANEW}",
        ),
    ],
    "Any change after a crash": [
        runs(counting(task=total), B),
        runs(counting(task=total), B, shows=[b(4)], kill_at="published"),
        refused_somehow(
            counting([("map", doubled)], total), "sink 'out' has released all of it, 1 row"
        ),
        # shown by the old flow as 4, counted by the new one as 2 + 2 * 2, and 2 * 2 more
        runs(
            counting([("map", doubled)], total),
            B,
            shows=[b(4), b(10)],
            finish_with_this_flow=True,
        ),
    ],
}
