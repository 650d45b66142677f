"""State goes away: keys that a flow is done with leave nothing behind, however many there were."""

import json
from dataclasses import dataclass

import pytest
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.spark.state import bucket as buckets
from cutwater.spark.state import changelog

EPOCHS = 240
VISITORS = 6
"""New ones in each epoch; one stays for three epochs and never comes again."""


@dataclass(frozen=True)
class Visit:
    visitor: str
    at: int
    is_last: bool


@cw.task(initial=0)
def until_last(seen: int, visit: Visit) -> tuple[int | None, list[int]]:
    """Deletes its state with the last visit."""
    return (None, [seen + 1]) if visit.is_last else (seen + 1, [])


@cw.task(initial=0)
def counted(seen: int, visit: Visit) -> tuple[int, list[int]]:
    """Never deletes anything itself."""
    return seen + 1, []


@cw.vectorised(initial=0)
def in_columns(seen: int, visit: Visit, keys: cw.Keys) -> tuple[int, None]:
    return keys.sum(1, start=seen), None, keys.last(visit.is_last)


def sliding():
    """All ways in which state goes away: deletion, expiry, and what the frontier completes."""
    flow = cw.Flow("sliding")
    visits = flow.source("visits", Visit, time="at", watermark=cw.bounded_delay(1))
    by_visitor = visits.key_by("visitor")
    flow.sink("deleted", by_visitor.apply(until_last))
    flow.sink("columns", by_visitor.apply(in_columns))
    flow.sink("expired", by_visitor.apply(counted, expire_after=5, name="expiring"))
    flow.sink("windows", by_visitor.window(cw.tumbling(4)).aggregate(n=cw.agg.count()))
    flow.sink("batches", visits.batch())
    return flow


def put(folder, epoch):
    visits = [
        Visit(f"visitor {number}", epoch, number // VISITORS == epoch - 2)
        for number in range(max(0, epoch - 2) * VISITORS, (epoch + 1) * VISITORS)
    ]
    lines = "".join(json.dumps(vars(visit)) + "\n" for visit in visits)
    (folder / f"{epoch:05}.jsonl").write_text(lines)


def kept(spark):
    """How many keys have a state of any step, and how many bytes there are in all logs."""
    keys = 0
    for (level, label), group in spark.states.items():
        handle = changelog.StateStore(group)
        copy = buckets.BucketStates(handle, "nobody", level, label)._copy
        keys += sum(len(states) for states in copy.steps.values())
    written = (value for group in spark.states.values() for value in group.log.items.values())
    return keys, sum(len(data) for (data,) in written)


@pytest.mark.slow
def test_a_key_space_that_moves_on_keeps_state_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(buckets, "SMALLEST_LOG", 2_000)
    job = make_job(sliding(), tmp_path, max_bytes_per_epoch=1 << 20, buckets=4)
    spark = ToySpark(job, monkeypatch, seed=7)
    sizes = []
    for epoch in range(EPOCHS):
        put(tmp_path / "in" / "visits", epoch)
        spark.start()
        spark.run_to_the_end([])
        sizes.append(kept(spark))
    assert spark.committed == EPOCHS
    early, late = sizes[20 : EPOCHS // 3], sizes[-EPOCHS // 3 :]
    for number in (0, 1):
        before, after = (max(size[number] for size in part) for part in (early, late))
        assert after <= 1.2 * before, f"{before} grew to {after}"
    assert max(keys for keys, _ in sizes) < EPOCHS * VISITORS / 4
