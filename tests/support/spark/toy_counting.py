"""A flow that counts, its input in folders and its rows in memory, for runs without Spark."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from support.spark.toy_realtime import MemorySink

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
    buckets = MemorySink.shown_rows.get(job.sinks[sink].name, {})
    return [json.loads(line) for label in sorted(buckets) for line in buckets[label]]


def expected_counts(job):
    seen = Counter()
    for source in job.sources.values():
        for path in sorted(Path(source.path).iterdir()):
            for line in path.read_text().splitlines():
                seen[json.loads(line)["name"]] += 1
    return seen
