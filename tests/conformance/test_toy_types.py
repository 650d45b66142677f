"""Times, keys and values of every sort, kept and sent by our runtime without a JVM."""

from __future__ import annotations

import datetime as dt
import enum
import random
import uuid
from dataclasses import dataclass, make_dataclass
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from support.spark.agreement import assert_agreement, expected
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.spark.job.spec import spark_plan
from cutwater.spark.support import check_support


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Place:
    x: int
    colour: Colour


@dataclass(frozen=True)
class Reading:
    name: str
    at: int
    place: Place
    price: Decimal


@dataclass(frozen=True)
class Note:
    name: str
    at: int


def agree(flow, root, inputs, **settings):
    """Run the flow over the files of each source, killed twice, to the end of the input."""
    check_support(spark_plan(flow))
    job = make_job(flow, root, max_bytes_per_epoch=1, permute=3, **settings)
    for source, files in inputs.items():
        for number, items in enumerate(files):
            lines = b"".join(msgspec.json.encode(item) + b"\n" for item in items)
            (root / "in" / source / f"{number}").write_bytes(lines)
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        toy.run_to_the_end(["never", "staged", "published"], close=True)
    wanted = expected(flow, root / "checkpoint", toy.offsets, is_closed=True)
    assert all(any(lines for lines in epochs) for epochs in wanted.values())
    assert_agreement(wanted, {name: sink.root for name, sink in job.sinks.items()})
    return wanted


DAY, SECOND = dt.timedelta(days=1), dt.timedelta(seconds=1)
NOON = dt.datetime(2024, 2, 28, 12, tzinfo=dt.UTC)
# type of the times, the time of a number, a length of so many
TIMES = {
    "int": (int, lambda n: n, lambda n: n),
    "float": (float, lambda n: n * 0.5, lambda n: n * 0.5),
    "int or float": (int | float, lambda n: n if n % 2 else n + 0.5, lambda n: n),
    "int in fractions": (int, lambda n: n, lambda n: n + 0.5),
    "Decimal": (Decimal, lambda n: Decimal(n) / 4, lambda n: Decimal(n) / 4),
    "date": (dt.date, lambda n: NOON.date() + n * DAY, lambda n: n * DAY),
    "datetime": (dt.datetime, lambda n: NOON + n * SECOND, lambda n: n * SECOND),
    "naive": (dt.datetime, lambda n: dt.datetime(1969, 12, 31) + n * DAY, lambda n: n * DAY),
    "duration": (dt.timedelta, lambda n: n * SECOND, lambda n: n * SECOND),
}


@cw.task(initial=0)
def counted(seen: int, item: Any) -> tuple[int, list[int]]:
    return seen + 1, [seen + 1]


def size(value: Any) -> int:
    return len(value)


def name_of(value: Any) -> str:
    return str(value.name)


@pytest.mark.parametrize("kind", TIMES)
def test_times_of_every_sort_come_back(tmp_path, kind):
    tp, time, length = TIMES[kind]
    item = make_dataclass("Timed", [("name", str), ("at", tp)], frozen=True)

    def received(state: int, at: Any, value: Any) -> tuple[int, list[int | cw.Notify]]:
        return state + 1, [cw.Notify(at + length(2))]

    def completed(state: int, at: Any) -> tuple[int, list[int | cw.Notify]]:
        return state, [state]

    flow = cw.Flow("times")
    rule = cw.bounded_delay(length(3))
    items = flow.source("items", item, time="at", watermark=rule)
    others = flow.source("others", item, time="at", watermark=rule)
    keyed = items.merge(others).key_by("name")
    windows = [cw.tumbling(length(4)), cw.sliding(length(4), every=length(2))]
    for number, window in enumerate([*windows, cw.session(length(2))]):
        windowed = keyed.window(window).aggregate(name=f"w{number}", every=cw.agg.collect())
        flow.sink(f"windows {number}", windowed.batch(name=f"b{number}"))
    flow.sink("expired", keyed.apply(counted, expire_after=length(2)))
    flow.sink("told", keyed.on_complete(received, completed, initial=0))
    flow.sink("counts", keyed.map(name_of).map(size, name="s").histogram(unbounded=True))
    flow.sink("held", keyed.batch().accumulate(unbounded=True).map(size))
    rng = random.Random(5)
    files = [
        [item(rng.choice("ab"), time(3 * n + rng.randrange(6))) for _ in range(5)] for n in range(5)
    ]
    agree(flow, tmp_path, {"items": files, "others": files[1:3]})


@pytest.mark.parametrize("buckets", [1, 16])
def test_what_is_asked_for_before_the_first_event_is_reported(tmp_path, buckets):
    """Once, also where the first epoch completes it and no event ever comes to the step."""

    def received(state: int, at: int, value: Any) -> tuple[int, list[int | cw.Notify]]:
        return state + 1, []

    def completed(state: int, at: int) -> tuple[int | None, list[int | cw.Notify]]:
        return None, [100 * at + state, *([cw.Notify(at + 4)] if at < 10 else [])]

    flow = cw.Flow("requests")
    items = flow.source("items", Note, time="at", watermark=cw.bounded_delay(1))
    told = items.on_complete(received, completed, initial=0, requests=[2, 5, 900], name="all")
    flow.sink("told", told)
    none = items.filter(lambda item: False, name="none")
    flow.sink("alone", none.on_complete(received, completed, initial=0, requests=[3], name="one"))
    files = [[Note("a", at) for at in (n, n + 4)] for n in range(0, 15, 5)]
    wanted = agree(flow, tmp_path, {"items": files}, buckets=buckets)
    assert any(wanted["alone"][:-1])


def test_partially_ordered_times_are_complete_at_the_end(tmp_path):
    """A record may carry a pair of times; no rule makes watermarks of these."""

    @dataclass(frozen=True)
    class Cell:
        name: str
        at: cw.Product

    flow = cw.Flow("cells")
    cells = flow.source("cells", Cell, time="at")
    flow.sink("held", cells.batch())
    names = cells.map(name_of)
    flow.sink("counts", names.histogram(unbounded=True))
    flow.sink("paths", names.key_by(str, name="k").histogram(paths=True, unbounded=True, name="p"))
    files = [[Cell("ab"[n % 2], cw.Product(n, m)) for n in range(3)] for m in (2, 1, 0)]
    wanted = agree(flow, tmp_path, {"cells": files})
    assert not any(lines for epochs in wanted.values() for lines in epochs[:-1])


def by_parity(reading: Reading) -> Any:
    return reading.at % 2 == 0 or (reading.name, Decimal(reading.at), uuid.UUID(int=reading.at))


KEYS = {
    "a field": ["name"],
    "two fields": ["name", "at"],
    "a record": ["place"],
    "a record and a number": ["place", "price"],
    "a function without annotations": [lambda reading: (reading.name, reading.at % 3)],
    "keys of several sorts": [by_parity],
    "keys that are equal": [lambda reading: (1, 1.0, True)[reading.at % 3]],
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_sort_are_shown_as_they_came(tmp_path, kind):
    """Also where the key was made by a step before, which only a key that travels can show."""
    flow = cw.Flow("keys")
    readings = flow.source("readings", Reading, time="at", watermark=cw.bounded_delay(2))
    fork = readings.key_by(*KEYS[kind])
    own = readings.key_by(*KEYS[kind], name="own")
    one = {"n": cw.agg.count()}
    flow.sink("own", own.aggregate(name="a", first=cw.agg.first("price"), **one))
    flow.sink("epoch", fork.aggregate(name="b", emit="epoch", most=cw.agg.max("price"), **one))
    flow.sink("window", fork.window(cw.tumbling(3)).aggregate(name="c", **one))
    held = fork.batch()
    flow.sink("held", held)
    flow.sink("behind", held.map(size).aggregate(name="d", last=cw.agg.last()))
    joined = fork.join(fork.filter(bool), lambda a, b: a.at + b.at, name="j")
    flow.sink("joined", joined.map(int).aggregate(name="e", **one))
    rng = random.Random(7)
    files = [
        [
            Reading(
                rng.choice("ab"),
                n + rng.randrange(3),
                Place(rng.randrange(2), rng.choice(list(Colour))),
                Decimal(rng.randrange(99)) / 10,
            )
            for _ in range(4)
        ]
        for n in range(5)
    ]
    agree(flow, tmp_path, {"readings": files})


def test_aggregates_without_a_key(tmp_path):
    flow = cw.Flow("all")
    notes = flow.source("notes", Note)
    counted = {"n": cw.agg.count(), "newest": cw.agg.max("at"), "mean": cw.agg.mean("at")}
    flow.sink("each", notes.aggregate(name="each", **counted))
    flow.sink("epoch", notes.aggregate(name="epoch", emit="epoch", **counted))
    agree(flow, tmp_path, {"notes": [[Note("a", n + m) for n in range(3)] for m in range(3)]})


def test_values_of_several_types_are_kept_together(tmp_path):
    """Unions of records inside batches, windows and joins."""
    flow = cw.Flow("unions")
    readings = flow.source("readings", Reading, time="at", watermark=cw.bounded_delay(1))
    notes = flow.source("notes", Note, time="at", watermark=cw.bounded_delay(1))
    both = readings.merge(notes).key_by("name")
    every = {"every": cw.agg.collect(), "first": cw.agg.first()}
    windows = both.window(cw.tumbling(2)).aggregate(name="w", **every)
    flow.sink("windows", windows)
    flow.sink("all", both.aggregate(name="a", unbounded=True, **every))
    shared = {"n": cw.agg.count(), "newest": cw.agg.max("at")}
    flow.sink("shared", both.aggregate(name="s", **shared))
    flow.sink("per epoch", both.aggregate(name="e", emit="epoch", **shared))
    flow.sink("held", windows.merge(both.batch()).batch(name="again"))
    counted = both.histogram(unbounded=True).map(lambda counts: counts.total())
    flow.sink("counts", counted)
    pairs = both.join(notes.key_by("name", name="k"), lambda a, b: (a, b), name="j")
    flow.sink("pairs", pairs)
    place = Place(1, Colour.RED)
    files = [[Reading("ab"[n % 2], n + m, place, Decimal(n)) for n in range(4)] for m in range(3)]
    noted = [[Note("ab"[n % 2], n + m) for n in range(4)] for m in range(3)]
    agree(flow, tmp_path, {"readings": files, "notes": noted})
