"""Random flows on the real-time engine without a JVM, against the simulator with ticks as epochs.

Runs are killed anywhere and batches end anywhere; rows arrive in any order between tasks.
"""

import contextlib
import os
import random
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from support.flows.random_flows import Item, RandomSource, seeded
from support.spark.agreement import is_subsequence, parts_of
from support.spark.toy_realtime import Killed, MemorySink, ToyRealTime, toy_job

import cutwater as cw
from cutwater.flow.steps import Iterate, Source

SEEDS = range(int(os.environ.get("CUTWATER_SEEDS", "20")))
SOURCES = (
    RandomSource("calm", "rule", 0, ()),
    RandomSource("late", "rule", 3, ()),
    RandomSource("numbered", "numbered", 0, ()),
    RandomSource("timeless", "field", 0, ()),
)


def recipe_of(seed):
    """A flow of two sources, or of more; loops are the other engine's."""
    number = seed
    while True:
        flow = seeded(number, SOURCES).flow()
        if not any(isinstance(step, Iterate) for step in flow.steps):
            return flow
        number += 1000


def write_items(job, rng, number):
    for source in job.sources.values():
        items = [
            Item(rng.choice("abc"), 3 * number + rng.randint(0, 4), rng.randrange(5))
            for _ in range(rng.randint(0, 7))
        ]
        lines = b"".join(msgspec.json.encode(item) + b"\n" for item in items)
        (Path(source.path) / f"{number:04}.jsonl").write_bytes(lines)


def inputs_of(toy):
    """What each source read, with a barrier after each tick that any of them planned."""
    inputs = {}
    for step in (step for step in toy.job.flow.steps if isinstance(step, Source)):
        decode = msgspec.json.Decoder(step.type).decode
        items = inputs.setdefault(step.name, [])
        for tick in sorted(toy.planned):
            for chunk in toy.planned[tick].get(step.name, ()):
                text = Path(chunk.to_json()["path"]).read_bytes()[chunk.start : chunk.end]
                items += [decode(line) for line in text.split(b"\n") if line.strip()]
            items.append(cw.BARRIER)
    return inputs


def shown(job, sink):
    """The rows of each bucket of each tick."""
    name = job.sinks[sink].name
    found = {}
    for label, rows in MemorySink.shown_rows.get(name, {}).items():
        for tick, row in zip(MemorySink.shown_ticks[name][label], rows, strict=True):
            found.setdefault(tick, {}).setdefault(label, []).append(row.rstrip(b"\n"))
    return found


def run_killed(toy, rng):
    for number in range(4):
        write_items(toy.job, rng, number)
        for _ in range(rng.randrange(3)):
            with contextlib.suppress(Killed):
                toy.run(kill_at=rng.randrange(1, 150), batch_ends=rng.randrange(2))
    write_items(toy.job, rng, 4)
    toy.run(batch_ends=1)


def assert_agreement(toy, result, *, is_closed):
    ticks = sorted(toy.planned)
    for sink in result.events:
        epochs = [[msgspec.json.encode(v) for v in epoch] for epoch in result.by_epoch(sink)]
        found = shown(toy.job, sink)
        if is_closed:
            last = max([*found, *ticks], default=0)
            ended = [tick for tick in found if tick not in toy.planned]
            assert len(ended) <= 1
            assert not ended or ended == [last]
            assert Counter(r for t in ended for rs in found[t].values() for r in rs) == Counter(
                epochs[-1]
            ), f"{sink}, end"
        for tick, rows in zip(ticks, epochs, strict=False):
            buckets = found.get(tick, {})
            assert Counter(r for rs in buckets.values() for r in rs) == Counter(rows), (sink, tick)
            for bucket in buckets.values():
                assert is_subsequence(bucket, rows), (sink, tick)
        if not is_closed:
            assert set(found) <= set(ticks)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_that_is_killed_means_what_the_simulator_says(tmp_path, seed):
    rng = random.Random(seed)
    job, partitions = toy_job(recipe_of(seed), tmp_path), rng.choice([1, 2, 4])
    toy = ToyRealTime(job, rng, partitions=partitions, readers=1 + seed % 3)
    run_killed(toy, rng)
    is_closed = bool(toy.planned) and rng.random() < 0.5
    if is_closed:
        with contextlib.suppress(Killed):
            toy.run(kill_at=rng.randrange(1, 40), close=True)
        toy.run(close=True)
    result = cw.simulate(toy.job.flow, inputs_of(toy))
    assert_agreement(toy, result, is_closed=is_closed)
    for source, late in result.late_events.items():
        lines = [x for p in parts_of(tmp_path / "late" / source).values() for ls in p for x in ls]
        kept = [msgspec.json.decode(line, type=Item) for line in lines]
        assert Counter(kept) == Counter(late), source


def test_the_flows_have_what_the_engine_must_be_tried_with():
    """Else all seeds could be of one sort."""
    verbs = Counter(step.verb for seed in SEEDS for step in recipe_of(seed).steps)
    assert {"apply", "join", "aggregate"} <= {verb.split()[0] for verb in verbs}, verbs
