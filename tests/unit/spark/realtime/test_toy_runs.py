"""The real-time engine without Spark: kills, ends of batches, rows in any order."""

import contextlib
import random
from collections import Counter

import pytest
from support.spark.toy_counting import expected_counts, flow, put, rows
from support.spark.toy_realtime import Killed, ToyRealTime, toy_job


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_lost_doubled_or_reordered(tmp_path, seed):
    rng = random.Random(seed)
    levels, sources = rng.choice([(0, 1), (1, 1), (1, 2), (2, 1), (2, 2)])
    toy = ToyRealTime(toy_job(flow(levels, sources), tmp_path), rng, readers=1 + seed % 3)
    for number in range(4):
        put(toy.job, rng, number, rng.randrange(0, 30))
        for _ in range(rng.randrange(3)):
            with contextlib.suppress(Killed):
                toy.run(kill_at=rng.randrange(1, 120), batch_ends=rng.randrange(2))
    put(toy.job, rng, 9, 5)
    toy.run(batch_ends=rng.randrange(3))
    seen = expected_counts(toy.job)
    shown = rows(toy.job, "out")
    assert len(shown) == sum(seen.values())
    if levels:
        by_name = {}
        for row in shown:
            by_name.setdefault(row["name"], []).append(row["count"])
        assert by_name == {name: list(range(1, n + 1)) for name, n in seen.items()}
    if levels > 1:
        assert len(rows(toy.job, "deep")) == sum(seen.values())
        last = Counter()
        for row in rows(toy.job, "deep"):
            last[row["name"]] += 1
            assert row["count"] == last[row["name"]]


@pytest.mark.parametrize("seed", [6, 10, 14])
def test_batches_end_while_replays_wait_for_sinks(tmp_path, seed):
    """Two sources, each with more planned ticks behind the snapshot than may be in flight."""
    toy = ToyRealTime(toy_job(flow(2, 2), tmp_path), random.Random(seed), snapshot_ticks=10_000)
    for number in range(10):
        put(toy.job, toy.random, number, 4)
    with contextlib.suppress(Killed):
        toy.run(kill_at=toy.random.randrange(100, 400))
    toy.run(batch_ends=3)
    toy.run()
    assert len(rows(toy.job, "out")) == sum(expected_counts(toy.job).values())
    assert len(rows(toy.job, "deep")) == sum(expected_counts(toy.job).values())
