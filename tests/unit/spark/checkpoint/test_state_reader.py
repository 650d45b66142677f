"""The state of a step as a table, without the flow that wrote it."""

import json
import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pytest
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError
from cutwater.ordering import canonical
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.state_reader import rows_of_log
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.exchange.readable_keys import key_of


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@dataclass(frozen=True)
class Seen:
    count: int
    sizes: Counter[str]
    last: Item | None = None


@cw.task(initial=Seen(0, Counter()))
def remember(seen: Seen, item: Item) -> tuple[Seen, list[Item]]:
    return Seen(seen.count + 1, seen.sizes + Counter({str(item.size): 1}), item), [item]


@cw.task(initial=0)
def total(state: int, item: Item) -> tuple[int, list[Item]]:
    return state + item.size, [item]


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """The rows of a step after a run of a flow without Spark."""

    def rows(flow, step, keys=()):
        job = make_job(flow, tmp_path, max_bytes_per_epoch=20)
        items = [("a", 1), ("b", 2), ("a", 3), ("c", 4)] * 3
        lines = "".join(json.dumps({"name": n, "size": s}) + "\n" for n, s in items)
        (tmp_path / "in" / "items" / "1").write_text(lines)
        toy = ToySpark(job, monkeypatch, 1)
        toy.run_to_the_end([])
        kept = identity_of(job, 2).steps[step]
        found = []
        for (level, _), group in toy.states.items():
            if level == kept.level - 1:
                log = {number: value[0] for (number,), value in group.log.items.items()}
                log.pop(-1, None)
                found += rows_of_log(log, step, kept, {canonical(key) for key in keys})
        return sorted(found, key=lambda row: str(row.get("key")))

    return rows


def keyed(*steps):
    flow = cw.Flow("keyed")
    stream = flow.source("items", Item).key_by("name")
    flow.sink("out", steps[0](stream))
    return flow


def test_a_state_that_is_a_number(rows):
    flow = keyed(lambda stream: stream.apply(total))
    assert rows(flow, "total") == [
        {"key": "a", "state": 12},
        {"key": "b", "state": 6},
        {"key": "c", "state": 12},
    ]


def test_only_the_keys_that_are_asked_for(rows):
    flow = keyed(lambda stream: stream.apply(total))
    assert rows(flow, "total", keys=["b", "z"]) == [{"key": "b", "state": 6}]


def test_a_state_that_is_a_record_of_records(rows):
    found = rows(keyed(lambda stream: stream.apply(remember)), "remember")
    assert found[1] == {
        "key": "b",
        "count": 3,
        "sizes": [["2", 3]],
        "last": {"name": "b", "size": 2},
    }


def test_aggregates_in_columns(rows):
    flow = keyed(lambda s: s.aggregate(n=cw.agg.count(), s=cw.agg.sum("size"), name="sums"))
    assert rows(flow, "sums")[0] == {"key": "a", "count()": 6, "sum(size)": 12}


def test_a_state_without_a_key(rows):
    flow = cw.Flow("one")
    flow.sink("out", flow.source("items", Item).apply(total))
    assert rows(flow, "total") == [{"state": 30}]


@pytest.mark.parametrize(
    "key",
    [
        "ada",
        "",
        "\x00\xff\x00",
        0,
        -1,
        255,
        -256,
        10**700,
        -(10**700),
        1.5,
        -0.25,
        None,
        b"\x00\x01",
        datetime(2026, 1, 2, 3, 4, 5, 6),
        datetime(1960, 1, 2, tzinfo=UTC),
        date(2026, 1, 2),
        timedelta(days=-1, seconds=3),
        uuid.UUID(int=7),
        ("a\x00", 1, (None, b"\x00")),
    ],
)
def test_a_key_is_read_back(key):
    assert key_of(canonical(key)) == key


def checkpoint(flow, root, finished):
    store = Checkpoint(root)
    store.create()
    job = make_job(flow, root.parent)
    store.save(identity_of(job, 2))
    for log in ("offsets", "commits"):
        (store.spark / log).mkdir(parents=True)
        for epoch in finished:
            (store.spark / log / str(epoch)).write_text("v1\n{}\n")
    return store


@pytest.mark.parametrize(
    ("step", "epoch", "finished", "message"),
    [
        ("totl", None, [0], "no state of a step 'totl'\n  hint: did you mean 'total'"),
        ("x", None, [0], "no state of a step 'x'\n  hint: steps that keep a state: total"),
        ("total", None, [], "is finished yet"),
        ("total", 2, [3, 4, 5], "no state of epoch 2; it has those of epochs 3 to 5"),
    ],
)
def test_what_is_not_there_is_a_sentence(tmp_path, step, epoch, finished, message):
    store = checkpoint(keyed(lambda stream: stream.apply(total)), tmp_path / "state", finished)
    with pytest.raises(RunError) as refused:
        cutwater_spark.read_state(store.root, step, epoch=epoch)
    assert message in str(refused.value)


def test_no_checkpoint_is_a_sentence(tmp_path):
    with pytest.raises(RunError, match="no-checkpoint"):
        cutwater_spark.read_state(tmp_path, "total")
