"""A bucket does no more than it must: what is read, written and woken up in an epoch."""

import json
from dataclasses import dataclass

import pytest
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.errors import extract
from cutwater.spark.exchange.envelope import DATA, END, EVERYONE, WATERMARK
from cutwater.spark.microbatch import stateful_operator as level_module
from cutwater.spark.state.bucket import BUSY, BucketStates


@dataclass(frozen=True)
class Item:
    name: str
    at: int


@cw.task(initial=0)
def count(seen: int, item: Item) -> tuple[int, list[Item]]:
    return seen + 1, [item]


def windows():
    flow = cw.Flow("windows")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(0))
    flow.sink("out", items.key_by("name").window(cw.tumbling(10)).aggregate(n=cw.agg.count()))
    return flow


def put(root, name, items, source="items"):
    lines = "".join(json.dumps({"name": n, "at": at}) + "\n" for n, at in items)
    (root / "in" / source / name).write_text(lines)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    def toy(flow, *files, **settings):
        job = make_job(flow, tmp_path, max_bytes_per_epoch=1, **settings)
        for number, items in enumerate(files):
            put(tmp_path, f"{number}", items)
        made = ToySpark(job, monkeypatch, 1)
        made.run_to_the_end([])
        return made

    return toy


def rows_read(toy):
    """The rows that sources send, by kind, for each epoch."""
    found = []
    for epoch in range(len(toy.offsets)):
        rows = [row for task in toy._read(epoch) for row in task]
        found.append(
            {kind: sum(row.kind == kind for row in rows) for kind in (DATA, WATERMARK, END)}
        )
    return found


def test_a_mark_is_sent_to_each_bucket_once_and_only_if_it_moved(toy):
    made = toy(windows(), [("a", 5)], [("a", 5)], [("a", 7)])
    assert [rows[WATERMARK] for rows in rows_read(made)] == [16, 0, 16]


def test_a_flow_that_needs_no_watermark_sends_none(toy):
    flow = cw.Flow("tasks")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(0))
    flow.sink("out", items.key_by("name").apply(count))
    assert [rows[WATERMARK] for rows in rows_read(toy(flow, [("a", 5)], [("a", 7)]))] == [0, 0]


def test_the_end_is_sent_once_and_by_one_source_alone(toy, tmp_path, monkeypatch):
    flow = cw.Flow("two")
    first, second = flow.source("items", Item), flow.source("others", Item)
    flow.sink("out", first.merge(second).batch())
    made = toy(flow, [("a", 5)])
    made.run_to_the_end([], close=True)
    assert [rows[END] for rows in rows_read(made)] == [0, 16]


def test_buckets_without_waiting_keys_are_not_read_when_a_watermark_comes(toy, monkeypatch):
    loaded = []
    real = BucketStates._load
    monkeypatch.setattr(BucketStates, "_load", lambda self: loaded.append(self.label) or real(self))
    made = toy(windows(), [("a", 5), ("b", 5), ("c", 5)])
    holders = set(loaded)
    assert 1 <= len(holders) <= 3
    loaded.clear()
    made.readers["items"].prepareForTriggerAvailableNow()
    put(made.job.sinks["out"].root.parent.parent, "z", [("a", 25)])
    made.start()
    made.run_to_the_end([])
    assert set(loaded) == holders
    loaded.clear()
    put(made.job.sinks["out"].root.parent.parent, "zz", [("a", 26)])
    made.start()
    made.run_to_the_end([])
    assert len(set(loaded)) == 1, "only the bucket that was sent an event"


def test_a_watermark_visits_only_keys_for_which_it_can_matter(toy, monkeypatch):
    """Keys whose windows are closed are gone; in a task they stay, and are not looked at."""

    @cw.task(initial=0)
    def kept(seen: int, item: Item) -> tuple[int, list[Item]]:
        return seen + 1, [item] if item.at > 10 else []

    flow = cw.Flow("chain")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(0))
    chain = items.key_by("name").apply(kept)
    flow.sink("out", chain.window(cw.tumbling(10)).aggregate(n=cw.agg.count()))
    made = toy(flow, [(f"k{n}", 1) for n in range(50)], [("k1", 12), ("k2", 13)])
    busy = {}
    for (_, label), store in made.states.items():
        made.handles[0].store = store
        bucket = BucketStates(level_module.StateStore(made.handles[0]), "toy", 0, label)
        (busy_of_step,) = [name for name in bucket._copy.steps if name.startswith(BUSY)] or [""]
        busy |= dict.fromkeys(bucket.keys(busy_of_step))
        assert bucket.busy == len(bucket.keys(busy_of_step))
    assert len(busy) == 2


def test_control_rows_never_reach_the_sinks(toy):
    made = toy(windows(), [("a", 5)], [("a", 25)])
    made.run_to_the_end([], close=True)
    for epoch in range(len(made.offsets)):
        tasks = made._read(epoch)
        for number in range(len(made.levels)):
            tasks = [list(made._level(number, rows)) for rows in made._exchange(tasks)]
        assert all(row.kind == DATA and row.target != EVERYONE for task in tasks for row in task)


@cw.task(initial=1)
def growing(size: int, item: Item) -> tuple[int, list[Item]]:
    return size << 32, [item]


@cw.task(initial=0)
def shifting(_: int, item: Item) -> tuple[int, list[Item]]:
    return 0, [Item(item.name, item.at << 70)]


@pytest.mark.parametrize(
    ("task", "code"), [(growing, "lost-in-a-snapshot"), (shifting, "cannot-be-written")]
)
def test_what_cannot_be_serialised_is_reported_with_its_step(toy, task, code):
    flow = cw.Flow("large")
    made = flow.source("items", Item).key_by("name").apply(task, name="first")
    flow.sink("out", made.key_by("name").apply(count))
    with pytest.raises(RuntimeError) as failed:
        toy(flow, [("a", 1), ("a", 2), ("a", 3)])
    error = extract(str(failed.value))
    assert error.problems[0].code == code
    assert "'first'" in str(error)
