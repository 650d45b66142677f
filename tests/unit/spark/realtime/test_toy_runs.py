"""The real-time engine without Spark: kills, ends of batches, rows in any order."""

import contextlib
import json
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.spark.toy_realtime import Killed, MemorySink, ToyRealTime, toy_job

import cutwater as cw


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@dataclass(frozen=True)
class Count:
    name: str
    count: int


@cw.task(initial=0)
def count(seen: int, item: Item) -> tuple[int, list[Count]]:
    return seen + item.size, [Count(item.name, seen + item.size)]


@cw.task(initial=0)
def tally(seen: int, item: Count) -> tuple[int, list[Count]]:
    return seen + 1, [Count(f"{item.count % 3}", seen + 1)]


def flow(levels=1, sources=1):
    made = cw.Flow("toy")
    first, *others = (made.source(f"s{n}", Item) for n in range(sources))
    items = first.merge(*others) if others else first
    if not levels:
        made.sink("out", items.map(lambda item: Count(item.name, item.size)))
        return made
    counts = items.key_by("name").apply(count)
    made.sink("out", counts)
    if levels > 1:
        made.sink("deep", counts.key_by(lambda c: c.count % 3).apply(tally))
    return made


def put(job, rng, number, lines):
    for source in job.sources.values():
        names = [rng.choice("abcdefg") for _ in range(lines)]
        text = "".join(json.dumps({"name": name, "size": 1}) + "\n" for name in names)
        (Path(source.path) / f"{number:04}").write_text(text)


def rows(job, sink):
    lanes = MemorySink.shown_rows.get(job.sinks[sink].name, {})
    return [json.loads(line) for label in sorted(lanes) for line in lanes[label]]


def expected_counts(job):
    seen = Counter()
    for source in job.sources.values():
        for path in sorted(Path(source.path).iterdir()):
            for line in path.read_text().splitlines():
                seen[json.loads(line)["name"]] += 1
    return seen


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_lost_doubled_or_reordered(tmp_path, seed):
    rng = random.Random(seed)
    levels, sources = rng.choice([(0, 1), (1, 1), (1, 2), (2, 1), (2, 2)])
    toy = ToyRealTime(toy_job(flow(levels, sources), tmp_path), rng)
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
