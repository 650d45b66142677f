"""A flow with a sink of each kind, killed anywhere, read from outside by observers."""

import json
import math
from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.spark.agreement import expected
from support.spark.toy_spark import POINTS, ToySpark, make_job

import cutwater as cw
from cutwater.errors import InputError, extract
from cutwater.observers.delta import DeltaObserver
from cutwater.observers.folder import FolderObserver
from cutwater.spark import call, delta_table, folder


@dataclass(frozen=True)
class Item:
    key: str
    number: int


@dataclass(frozen=True)
class Total:
    key: str
    total: int
    seen: tuple[int, ...]


@cw.task(initial=Total("", 0, ()))
def running(state: Total, item: Item) -> tuple[Total, list[Total]]:
    total = Total(item.key, state.total + item.number, (*state.seen, item.number)[-3:])
    return total, [total]


def a_flow():
    flow = cw.Flow("sinks")
    totals = flow.source("items", Item).key_by("key").apply(running)
    for kind in ("jsonl", "parquet", "delta", "call"):
        totals.sink(kind)
    return flow


def note(path, epoch, bucket, rows):
    with path.open("a") as file:
        file.write(json.dumps([epoch, bucket, [asdict(row) for row in rows]]) + "\n")


def places(root, compact_every):
    return {
        "parquet": folder(str(root / "parquet"), format="parquet"),
        "delta": delta_table(str(root / "delta"), compact_every=compact_every, keep_hours=0),
        "call": call(partial(note, root / "calls")),
    }


def run(root, items, kills=(), *, seed=1, partitions=2, compact_every=2, max_bytes=64):
    flow = a_flow()
    sinks = places(root, compact_every)
    job = make_job(flow, root, sinks=sinks, max_bytes_per_epoch=max_bytes, permute=seed)
    lines = [msgspec.json.encode(item) + b"\n" for item in items]
    (root / "in" / "items" / "1.jsonl").write_bytes(b"".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, seed, partitions)
        toy.run_to_the_end(list(kills))
    return flow, toy


def by_key(rows):
    found = {}
    for row in rows:
        found.setdefault(row["key"], []).append(row["seen"])
    return found


def canonical(row):
    return json.dumps(row, sort_keys=True)


@settings(max_examples=20)
@given(
    items=st.lists(st.builds(Item, st.sampled_from("abc"), st.integers(0, 9)), max_size=12),
    kills=st.lists(st.sampled_from(POINTS), max_size=6),
    seed=st.integers(0, 99),
    partitions=st.integers(1, 3),
)
def test_every_sink_shows_what_the_simulator_shows(
    tmp_path_factory, items, kills, seed, partitions
):
    root = tmp_path_factory.mktemp("toy")
    flow, toy = run(root, items, kills, seed=seed, partitions=partitions)
    epochs = expected(flow, root / "checkpoint", toy.offsets).get("delta", [])
    wanted = [[json.loads(line) for line in lines] for lines in epochs]
    check_folders(root, wanted)
    check_delta(root, wanted)
    check_calls(root, wanted)
    for name, sink in toy.job.sinks.items():
        assert sink.row_count(toy.job.claim_of(name)) == sum(map(len, wanted)), name


def check_folders(root, wanted):
    for path in (root / "out" / "jsonl", root / "parquet"):
        found = FolderObserver(path).epochs()
        assert found.keys() == {number for number, rows in enumerate(wanted) if rows}
        for epoch, rows in found.items():
            assert Counter(map(canonical, rows)) == Counter(map(canonical, wanted[epoch]))
            assert by_key(rows) == by_key(wanted[epoch])


def check_delta(root, wanted):
    observer = DeltaObserver(root / "delta")
    everything = [row for rows in wanted for row in rows]
    assert Counter(map(canonical, observer.rows())) == Counter(map(canonical, everything))
    for epoch, rows in observer.epochs().items():  # those that the log still knows
        assert rows == len(wanted[epoch])


def check_calls(root, wanted):
    """Each bucket of each epoch at least once, and always with the same rows in the same order."""
    path = root / "calls"
    calls = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    rows_of = {}
    for epoch, bucket, rows in calls:
        assert rows_of.setdefault((epoch, bucket), rows) == rows
    for epoch, rows in enumerate(wanted):
        found = [row for (e, _), bucket in sorted(rows_of.items()) if e == epoch for row in bucket]
        assert Counter(map(canonical, found)) == Counter(map(canonical, rows))
        assert by_key(found) == by_key(rows)


@pytest.mark.parametrize("point", POINTS)
def test_each_point_is_survived_in_each_epoch(tmp_path, point):
    items = [Item("abc"[n % 3], n) for n in range(24)]
    flow, toy = run(tmp_path, items, ["never", point] * 6)
    wanted = [
        [json.loads(line) for line in lines]
        for lines in expected(flow, tmp_path / "checkpoint", toy.offsets)["delta"]
    ]
    assert len(wanted) > 4
    check_folders(tmp_path, wanted)
    check_delta(tmp_path, wanted)
    check_calls(tmp_path, wanted)


@dataclass(frozen=True)
class Hostile:
    value: float
    text: str
    number: int | None


HOSTILE = {
    "nan": Hostile(math.nan, "", 0),
    "10 MB": Hostile(0.0, "x" * 10_000_000, 0),
    "surrogate": Hostile(0.0, "\ud800", 0),
    "2**127": Hostile(0.0, "", 2**127),
    "2**63": Hostile(0.0, "", 2**63),
    "another type": Hostile(0.0, 5, 0),
}


def hostile_flow(value, kind):
    flow = cw.Flow("hostile")

    def made(item: Item) -> Hostile:
        return value

    flow.source("items", Item).map(made).sink(kind)
    return flow


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_hostile_value_is_carried_or_a_sentence(tmp_path, kind, name):
    value = HOSTILE[name]
    sink = places(tmp_path, 0)[kind]
    job = make_job(hostile_flow(value, kind), tmp_path, sinks={kind: sink})
    (tmp_path / "in" / "items" / "1.jsonl").write_bytes(msgspec.json.encode(Item("a", 1)) + b"\n")
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, seed=1)
        if name in ("nan", "10 MB"):
            toy.run_to_the_end([])
            observer = (DeltaObserver if kind == "delta" else FolderObserver)(sink.path)
            assert repr(observer.rows()) == repr([asdict(value)])
        else:
            with pytest.raises(RuntimeError) as error:
                toy.run_to_the_end([])
            sentence = extract(str(error.value))
            assert isinstance(sentence, InputError)
            assert f"sink '{kind}'" in str(sentence)
            assert len(str(sentence)) < 600
