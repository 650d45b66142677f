"""Random flows on the real-time engine without a JVM, against the simulator with ticks as epochs.

Runs are killed anywhere and batches end anywhere; rows arrive in any order between tasks.
"""

import contextlib
import importlib
import os
import random
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from support.flows.random_flows import Item
from support.repo.package import ROOT
from support.spark import realtime_flows
from support.spark.agreement import parts_of
from support.spark.realtime_flows import recipe_of
from support.spark.tick_agreement import assert_ticks_agree, inputs_of
from support.spark.toy_realtime import Killed, MemorySink, ToyRealTime, toy_job

import cutwater as cw

EXAMPLES = {
    "averages": "flow",
    "bitemporal": "turnover",
    "inside_a_job": "flow",
    "inverted_index": "flow",
    "live": "flow",
    "vectorised": "flow",
}
"""Every example with a flow that has no loop, and the name of the flow."""
SEEDS = range(int(os.environ.get("CUTWATER_SEEDS", "20")))


def write_items(job, rng, number):
    for source in job.sources.values():
        realtime_flows.write_items(Path(source.path), rng, number)


def shown(job, sink):
    """The rows of each bucket of each tick."""
    name = job.sinks[sink].name
    found = {}
    for label, rows in MemorySink.shown_rows.get(name, {}).items():
        for tick, row in zip(MemorySink.shown_ticks[name][label], rows, strict=True):
            found.setdefault(tick, {}).setdefault(label, []).append(row.rstrip(b"\n"))
    return found


def run_killed(toy, rng, write=write_items):
    for number in range(4):
        write(toy.job, rng, number)
        for _ in range(rng.randrange(3)):
            with contextlib.suppress(Killed):
                toy.run(kill_at=rng.randrange(1, 150), batch_ends=rng.randrange(2))
    write(toy.job, rng, 4)
    toy.run(batch_ends=1)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_that_is_killed_means_what_the_simulator_says(tmp_path, seed):
    rng = random.Random(seed)
    job, partitions = toy_job(recipe_of(seed).flow(), tmp_path), rng.choice([1, 2, 4])
    toy = ToyRealTime(job, rng, partitions=partitions, readers=1 + seed % 3)
    run_killed(toy, rng)
    is_closed = bool(toy.planned) and rng.random() < 0.5
    if is_closed:
        with contextlib.suppress(Killed):
            toy.run(kill_at=rng.randrange(1, 40), close=True)
        toy.run(close=True)
    result = cw.simulate(toy.job.flow, inputs_of(toy.job.flow, toy.planned))
    released = {sink: shown(toy.job, sink) for sink in result.events}
    assert_ticks_agree(result, toy.planned, released, is_closed=is_closed)
    for source, late in result.late_events.items():
        lines = [x for p in parts_of(tmp_path / "late" / source).values() for ls in p for x in ls]
        kept = [msgspec.json.decode(line, type=Item) for line in lines]
        assert Counter(kept) == Counter(late), source


def written_from(inputs):
    """Writes values of an example, in any order and often."""

    def write(job, rng, number):
        for name, source in job.sources.items():
            tp = job.topology.source_step(name).type
            values = [each for each in inputs[name] if isinstance(each, tp)]  # no barriers
            drawn = rng.choices(values, k=rng.randrange(7))
            lines = b"".join(msgspec.json.encode(value) + b"\n" for value in drawn)
            (Path(source.path) / f"{number:04}.jsonl").write_bytes(lines)

    return write


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_that_is_killed_means_what_the_simulator_says(
    tmp_path, monkeypatch, example, seed
):
    """Two sources, arrays, two clocks, two levels."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    module = importlib.import_module(example)
    rng = random.Random(seed)
    job = toy_job(getattr(module, EXAMPLES[example]), tmp_path)
    toy = ToyRealTime(job, rng, partitions=2, readers=1 + seed % 2)
    run_killed(toy, rng, written_from(module.inputs))
    result = cw.simulate(toy.job.flow, inputs_of(toy.job.flow, toy.planned))
    released = {sink: shown(toy.job, sink) for sink in result.events}
    assert_ticks_agree(result, toy.planned, released, is_closed=False)


def test_the_flows_have_what_the_engine_must_be_tried_with():
    """Else all seeds could be of one sort."""
    verbs = Counter(step.verb for seed in SEEDS for step in recipe_of(seed).flow().steps)
    assert {"apply", "join", "aggregate"} <= {verb.split()[0] for verb in verbs}, verbs
