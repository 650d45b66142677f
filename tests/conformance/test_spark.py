"""The simulator and Spark agree epoch by epoch, on every sort of flow that Spark runs.

Buckets shuffle what they get before they sort it (``permute``), so nothing can rest on luck.
"""

from __future__ import annotations

import datetime as dt
import enum
import json
import random
import runpy
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from support.repo.package import ROOT
from support.spark.agreement import (
    assert_agreement,
    by_key,
    expected,
    inputs_of,
    offsets_of,
    parts_of,
)

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.flow.steps import Sink, Source
from cutwater.operators import accumulate, batch, compose, map_values, skip
from cutwater.spark.microbatch.query import Drive

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0)
def total(state: int, item: Item) -> tuple[int, list[Item]]:
    return state + item.size, [Item(item.name, state + item.size)]


@cw.task(initial=())
def sizes_so_far(state: tuple[int, ...], item: Item) -> tuple[tuple[int, ...], list[Item]]:
    """Order-sensitive: emits a number that is made of all sizes in the order they came in."""
    state = (*state, item.size % 10)[-8:]
    return state, [Item(item.name, int("".join(str(digit) for digit in state)))]


@cw.task(initial=0)
def until_seven(state: int, item: Item) -> tuple[int | None, list[Item]]:
    """Counts, and forgets its key at a size of 7."""
    return (None if item.size == 7 else state + 1), [Item(item.name, state)]


def copies(item: Item) -> list[Item]:
    return [Item(item.name, item.size * 10 + n) for n in range(item.size % 3)]


def is_odd(item: Item) -> bool:
    return item.size % 2 == 1


def by_parity(item: Item) -> Item:
    return Item("odd" if item.size % 2 else "even", item.size)


def stateless() -> cw.Flow:
    flow = cw.Flow("stateless")
    items = flow.source("items", Item)
    flow.sink("out", items.flat_map(copies).filter(is_odd).map(by_parity))
    return flow


def keyed() -> cw.Flow:
    flow = cw.Flow("keyed")
    flow.sink("out", flow.source("items", Item).key_by("name").apply(sizes_so_far))
    return flow


def two_levels() -> cw.Flow:
    flow = cw.Flow("two levels")
    items = flow.source("items", Item).filter(is_odd).key_by("name").apply(total)
    flow.sink("out", items.map(by_parity).key_by("name").apply(sizes_so_far))
    return flow


def fork() -> cw.Flow:
    """One stateful step feeds two sinks and two further stateful steps."""
    flow = cw.Flow("fork")
    totals = flow.source("items", Item).key_by("name").apply(total)
    flow.sink("a", totals)
    flow.sink("b", totals.filter(is_odd))
    parities = totals.map(by_parity).key_by("name").apply(sizes_so_far)
    flow.sink("c", parities)
    flow.sink("d", totals.merge(parities).key_by("size").apply(until_seven))
    return flow


def unkeyed() -> cw.Flow:
    flow = cw.Flow("unkeyed")
    flow.sink("out", flow.source("items", Item).apply(sizes_so_far))
    return flow


def forgetting() -> cw.Flow:
    flow = cw.Flow("forgetting")
    flow.sink("out", flow.source("items", Item).key_by("name").apply(until_seven))
    return flow


def chain() -> cw.Flow:
    """Two stateful steps and what is between them in one segment."""
    flow = cw.Flow("chain")
    totals = flow.source("items", Item).key_by("name").apply(total).flat_map(copies)
    flow.sink("out", totals.apply(sizes_so_far))
    return flow


def two_sources() -> cw.Flow:
    """Merged twice, once by different keys, which leaves no key at all."""
    flow = cw.Flow("two sources")
    first, second = flow.source("b first", Item), flow.source("a second", Item)
    flow.sink("out", first.union(second).key_by("name").apply(sizes_so_far))
    apart = first.key_by("name", name="k1").merge(second.key_by("size", name="k2"))
    flow.sink("together", apart.apply(total))
    return flow


def late() -> cw.Flow:
    """Late events are dropped, alike."""
    flow = cw.Flow("late")
    items = flow.source("items", Item, time="size", watermark=cw.bounded_delay(20))
    flow.sink("out", items.key_by("name").apply(total))
    return flow


def at_time(time: int, item: Item) -> Item:
    return Item(item.name, item.size + time % 2)


def run_of(items: list[Item]) -> list[Item]:
    return [Item(items[0].name, sum(item.size for item in items))]


def differences(before: int, event: cw.Data | cw.Watermark) -> tuple[int, list[cw.Data]]:
    """How much larger each size is than the one before."""
    if isinstance(event, cw.Watermark):
        return before, []
    item = event.value
    return item.size, [cw.Data(event.time, Item(item.name, item.size - before))]


def completed_so_far(time: int, pairs: tuple[tuple[int, Item], ...]) -> Item:
    return Item(pairs[-1][1].name, sum(item.size for _, item in pairs) * 100 + time)


def own_operators() -> cw.Flow:
    """Operators of one's own and P4's, keyed and not, with what is held from the start."""
    flow = cw.Flow("own operators")
    items = flow.source("items", Item, time="size", watermark=cw.bounded_delay(20))
    by_name = items.map_values(at_time).key_by("name")
    flow.sink("differences", by_name.operator(cw.Operator(0, differences), emits=Item))
    flow.sink("runs", by_name.skip(2).bulk(run_of, 3))
    composed = compose(batch(), accumulate(), map_values(completed_so_far))
    flow.sink("composed", by_name.operator(composed, name="composed"))
    flow.sink("skipping", by_name.operator(skip(composed, 1), name="skipping"))
    held = items.batch(pending=[(3, Item("n0", 7))]).map(sizes).flatten()
    flow.sink("held", held)
    flow.sink("buffered", items.bulk(run_of, 50, buffer=[(0, Item("n0", 1))], name="buffered"))
    return flow


def sizes(pairs: tuple[tuple[int, Item], ...]) -> list[Item]:
    return [item for _, item in pairs]


# Each flow and its levels: the number of state operators that Spark may have for it.
FLOWS = {
    stateless: 0,
    keyed: 1,
    two_levels: 2,
    fork: 3,
    unkeyed: 1,
    forgetting: 1,
    chain: 1,
    two_sources: 1,
    late: 1,
    own_operators: 1,
}


def sources(flow):
    return [step.name for step in flow.steps if isinstance(step, Source)]


def write_items(flow, root, seed, files=3, lines=40):
    rng = random.Random(seed)
    for source in sources(flow):
        folder = root / "in" / source
        folder.mkdir(parents=True)
        for number in range(files):
            items = [(f"n{rng.randrange(6)}", rng.randrange(60)) for _ in range(lines)]
            text = "".join(json.dumps({"name": n, "size": s}) + "\n" for n, s in items)
            (folder / f"{number:03}.jsonl").write_text(text)


@pytest.fixture
def run(spark, tmp_path):
    """Run a flow over what lies in `tmp_path`; give back what to compare it with."""

    def run(flow, root=tmp_path, max_bytes=1000, **settings):
        names = [step.name for step in flow.steps if isinstance(step, Sink)]
        folders = {name: root / "out" / name for name in names}
        result = cutwater_spark.run(
            flow,
            spark,
            sources={
                s: cutwater_spark.json_lines(str(root / "in" / s), max_bytes) for s in sources(flow)
            },
            sinks=folders,
            checkpoint=root / "checkpoint",
            **{"permute": 11, **settings},
        )
        offsets = offsets_of(root / "checkpoint", sources(flow))
        assert result.next_epoch == len(offsets)
        wanted = expected(flow, root / "checkpoint", offsets)
        assert result.rows == {s: sum(map(len, epochs)) for s, epochs in wanted.items()}
        return result, wanted, folders

    return run


@pytest.fixture
def reports(monkeypatch):
    """What Spark reports about every epoch."""
    found, real = [], Drive._watch

    def watch(self, query, job):
        real(self, query, job)
        found.extend(query.recentProgress)

    monkeypatch.setattr(Drive, "_watch", watch)
    return found


@pytest.mark.parametrize("make", FLOWS, ids=lambda make: make.__name__)
def test_every_epoch_is_the_simulators_with_one_state_operator_per_level(
    run, tmp_path, reports, make
):
    flow = make()
    write_items(flow, tmp_path, seed=len(make.__name__))
    result, wanted, folders = run(flow)
    assert result.epochs >= 3
    assert any(lines for epochs in wanted.values() for lines in epochs)
    assert_agreement(wanted, folders)
    # What is keyed by a field that the rows do not have cannot be told apart by key.
    by_name = {sink: epochs for sink, epochs in wanted.items() if sink != "d"}
    assert_agreement(by_name, folders, key=lambda row: row["name"])
    assert len(reports) >= result.epochs
    for report in reports:
        names = [operator["operatorName"] for operator in report["stateOperators"]]
        assert len(names) == FLOWS[make]
        assert all(name.startswith("transformWithState") for name in names)
        assert len(report["sources"]) == len(sources(flow))


def test_late_events_are_counted_and_kept_in_a_side_output(run, tmp_path):
    flow = late()
    write_items(flow, tmp_path, seed=4)
    result, _, _ = run(flow)
    checkpoint = tmp_path / "checkpoint"
    simulated = cw.simulate(flow, inputs_of(flow, checkpoint, offsets_of(checkpoint, ["items"])))
    assert result.late == dict(simulated.late)
    assert result.late["items"] > 0
    kept = parts_of(checkpoint / "late-events" / "items")
    assert sum(len(part) for parts in kept.values() for part in parts) == result.late["items"]


def test_the_example(run, tmp_path):
    """Two sources merged: readings and resets (P1, Listing 1)."""
    flow = runpy.run_path(str(ROOT / "examples" / "averages.py"))["flow"]
    rng = random.Random(3)
    for source in ("readings", "resets"):
        (tmp_path / "in" / source).mkdir(parents=True)
    for number in range(4):
        for source, count in (("readings", 60), ("resets", 6)):
            records = [
                {"sensor": f"s{rng.randrange(5)}", "at": 100 * number + n, "value": rng.random()}
                for n in range(count)
            ]
            if source == "resets":
                records = [{"sensor": r["sensor"], "at": r["at"]} for r in records]
            path = tmp_path / "in" / source / f"{number}.jsonl"
            path.write_text("".join(json.dumps(record) + "\n" for record in records))
    _, wanted, folders = run(flow, max_bytes=3000)
    assert_agreement(wanted, folders, key=lambda row: row["sensor"])


def test_a_run_that_goes_on_is_one_run(run, tmp_path):
    """States, files and epochs are taken up where they were, by copies of other workers too."""
    flow = two_levels()
    write_items(flow, tmp_path, seed=1, files=2)
    run(flow, max_bytes=700)
    (tmp_path / "in" / "items" / "zzz.jsonl").write_text('{"name": "n1", "size": 5}\n' * 50)
    result, wanted, folders = run(flow, max_bytes=500, permute=None)
    assert result.generation == 2
    assert_agreement(wanted, folders, key=lambda row: row["name"])
    again, _, _ = run(flow)
    assert (again.epochs, again.rows) == (0, result.rows)


def test_each_step_runs_once_for_each_event(spark, tmp_path):
    """With a fork: no part of the plan is run twice, or runs with two states."""
    calls = tmp_path / "calls"
    calls.touch()

    def noted(name: str, item: Item) -> None:
        with calls.open("a") as file:  # one write of one short line is whole
            file.write(f"{name}\n")

    def mapped(item: Item) -> Item:
        noted("mapped", item)
        return item

    @cw.task(initial=0)
    def counted(state: int, item: Item) -> tuple[int, list[Item]]:
        noted("counted", item)
        return state + 1, [Item(item.name, state + 1)]

    @cw.task(initial=0)
    def further(state: int, item: Item) -> tuple[int, list[Item]]:
        noted("further", item)
        return state + 1, [Item(item.name, state + 1)]

    def received(state: int, time: int, item: Item) -> tuple[int, list[Item | cw.Notify]]:
        noted("received", item)
        return state + 1, [cw.Notify(10**6)]

    def completed(state: int, time: int) -> tuple[int, list[Item | cw.Notify]]:
        noted("completed", Item("", 0))
        return state, [Item("all", state)]

    flow = cw.Flow("calls")
    counts = flow.source("items", Item).map(mapped).key_by("name").apply(counted)
    flow.sink("a", counts)
    flow.sink("b", counts.filter(is_odd))
    flow.sink("c", counts.key_by("size").apply(further))
    flow.sink("d", counts.key_by("name", name="k").on_complete(received, completed, initial=0))
    write_items(flow, tmp_path, seed=2, files=2, lines=30)
    result = cutwater_spark.run(
        flow,
        spark,
        sources={"items": tmp_path / "in" / "items"},
        sinks={name: tmp_path / "out" / name for name in "abcd"},
        checkpoint=tmp_path / "checkpoint",
        close=True,
    )
    assert result.rows["a"] == 60
    keys = result.rows["d"]
    each = dict.fromkeys(["mapped", "counted", "further", "received"], 60)
    assert Counter(calls.read_text().split()) == {**each, "completed": keys}
    assert keys == 6


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Place:
    x: float
    y: float | None = None


@dataclass(frozen=True)
class ShuffleRow:
    key: str
    place: Place
    tags: list[str]
    counts: dict[str, int]
    at: dt.datetime
    price: Decimal
    colour: Colour
    inside: ShuffleRow | None = None
    note: str | None = None
    sizes: tuple[int, ...] = ()
    day: dt.date | None = None
    blob: bytes = b""


@dataclass(frozen=True)
class Lost:
    key: str
    since: dt.datetime


@dataclass
class Kept:
    """A state that can be changed in place, as a user may do."""

    rows: int = 0
    worth: Decimal = Decimal(0)
    places: list[Place] = field(default_factory=list)
    colours: dict[str, int] = field(default_factory=dict)
    newest: dt.datetime | None = None


@dataclass(frozen=True)
class Report:
    key: str
    worth: Decimal
    places: list[Place]
    colours: dict[str, int]
    newest: dt.datetime | None
    last: ShuffleRow | None


@cw.task(initial=Kept())
def keep(state: Kept, event: ShuffleRow | Lost) -> tuple[Kept | None, list[Report]]:
    if isinstance(event, Lost):
        return None, [Report(event.key, state.worth, [], {}, event.since, None)]
    state.rows += 1
    state.worth += event.price
    state.places = [*state.places, event.place][-3:]
    name = event.colour.value
    state.colours[name] = state.colours.get(name, 0) + 1
    state.newest = max(state.newest or event.at, event.at)
    report = Report(
        event.key, state.worth, list(state.places), dict(state.colours), state.newest, event.inside
    )
    return state, [report]


def test_all_sorts_of_types(run, tmp_path):
    """Nested, optional, recursive, lists, dicts, times, decimals, enums, bytes, a union."""
    flow = cw.Flow("types")
    rows, losses = flow.source("rows", ShuffleRow), flow.source("losses", Lost)
    flow.sink("reports", rows.merge(losses).key_by("key").apply(keep))
    flow.sink("rows", rows)
    rng, start = random.Random(8), dt.datetime(2024, 2, 28, 23, 59, 59, 123456, tzinfo=dt.UTC)
    for name in ("rows", "losses"):
        (tmp_path / "in" / name).mkdir(parents=True)
    for number in range(3):
        lines = []
        for n in range(25):
            inner = ShuffleRow(
                "in", Place(0.1), [], {}, start, Decimal("0.10"), Colour.BLUE, blob=b"\x00\xff"
            )
            outer = ShuffleRow(
                key=rng.choice(["ä", "b", "\u2028c", ""]),
                place=Place(rng.random(), rng.choice([None, -0.0, 1e300])),
                tags=[f"t{k}" for k in range(n % 3)],
                counts={"é": n, "": -(2**63)},
                at=start + dt.timedelta(hours=rng.randrange(1000), microseconds=n),
                price=Decimal(rng.randrange(10**6)) / 1000,
                colour=rng.choice(list(Colour)),
                inside=rng.choice([None, inner]),
                note=rng.choice([None, "\n"]),
                sizes=tuple(range(n % 4)),
                day=rng.choice([None, dt.date(1, 1, 1)]),
            )
            lines.append(msgspec.json.encode(outer))
        (tmp_path / "in" / "rows" / str(number)).write_bytes(b"\n".join(lines))
        lost = [Lost(key, start) for key in ("ä", "b")]
        (tmp_path / "in" / "losses" / str(number)).write_bytes(
            b"\n".join(msgspec.json.encode(record) for record in lost)
        )
    _, wanted, folders = run(flow, max_bytes=4000)
    assert len(wanted["reports"]) >= 3
    assert_agreement(wanted, folders, key=lambda row: row["key"])


def test_results_do_not_depend_on_how_epochs_are_cut(run, tmp_path):
    """One source, by key: each key's rows are the same sequence, whatever an epoch reads."""
    flow = two_levels()
    sequences, counts = [], []
    for number, max_bytes in enumerate((200, 600, 1 << 20)):
        root = tmp_path / str(number)
        write_items(flow, root, seed=9, files=2, lines=20)
        result, _, folders = run(flow, root=root, max_bytes=max_bytes, permute=number)
        parts = parts_of(folders["out"])
        lines = [line for epoch in sorted(parts) for part in parts[epoch] for line in part]
        sequences.append(by_key(lines, lambda row: row["name"]))
        counts.append(result.epochs)
    assert counts[0] > counts[1] > counts[2] == 1
    assert sequences[0] == sequences[1] == sequences[2]


def test_a_large_epoch_in_several_parts_is_in_order(run, tmp_path):
    """More than a task reads at once, and more than a row holds."""
    flow = stateless()
    folder = tmp_path / "in" / "items"
    folder.mkdir(parents=True)
    text = "".join(json.dumps({"name": "n" * 40, "size": n * 7 + 2}) + "\n" for n in range(9000))
    Path(folder / "big").write_text(text)
    result, wanted, folders = run(flow, max_bytes=1 << 30)
    parts = parts_of(folders["out"])[0]
    assert len(parts) > 1
    assert [line for part in parts for line in part] == wanted["out"][0]
    assert result.rows["out"] == len(wanted["out"][0])
