"""Random flows on real Spark, many side by side in one query, against the simulator.

`CUTWATER_SEEDS` says how many flows there are; ``make conformance`` tries more of them.
"""

from __future__ import annotations

import os
import random

import msgspec
import pytest
from support.flows.random_flows import Item, RandomSource, packed, seeded
from support.spark.agreement import assert_agreement, expected, is_closed, offsets_of

from cutwater import spark as cutwater_spark
from cutwater.flow import steps
from cutwater.flow.steps import Sink
from cutwater.spark import runner

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SEEDS = range(int(os.environ.get("CUTWATER_SEEDS", "20")))
PACK = 10
PACKS = [SEEDS[n : n + PACK] for n in range(0, len(SEEDS), PACK)]
SOURCES = (
    RandomSource("calm", "rule", 0, ()),
    RandomSource("late", "rule", 3, ()),
    RandomSource("numbered", "numbered", 0, ()),
    RandomSource("quiet", "rule", 1, ()),
    RandomSource("timeless", "field", 0, ()),
)
FILES = {"calm": 4, "late": 4, "numbered": 4, "quiet": 2, "timeless": 3}


def flow_of(seeds):
    return packed([seeded(seed, SOURCES) for seed in seeds])


def write_items(root, seed):
    """Files whose times grow, with some that are out of order and some that are late."""
    rng = random.Random(seed)
    for source, files in FILES.items():
        folder = root / "in" / source
        folder.mkdir(parents=True)
        for number in range(files):
            items = [
                Item(rng.choice("abc"), 3 * number + rng.randint(0, 4), rng.randrange(5))
                for _ in range(rng.randint(3, 7))
            ]
            lines = b"".join(msgspec.json.encode(item) + b"\n" for item in items)
            (folder / f"{number}.jsonl").write_bytes(lines)


def run(spark, root, flow, **settings):
    names = [step.name for step in flow.steps if isinstance(step, Sink)]
    sources = [step.name for step in flow.steps if isinstance(step, steps.Source)]
    folders = {name: root / "out" / name for name in names}
    max_bytes = settings.pop("max_bytes", 200)
    result = cutwater_spark.run(
        flow,
        spark,
        sources={s: cutwater_spark.json_lines(str(root / "in" / s), max_bytes) for s in sources},
        sinks=folders,
        checkpoint=root / "checkpoint",
        permute=5,
        close=True,
        **settings,
    )
    assert is_closed(root / "checkpoint")
    offsets = offsets_of(root / "checkpoint", sources)
    assert result.next_epoch == len(offsets)
    return expected(flow, root / "checkpoint", offsets, is_closed=True), folders


ELSEWHERE = {steps.Iterate, steps.Enter, steps.FromLog, steps.ToLog, steps.JoinClocks}
"""Loops are in `test_toy_loops` and `test_toy_loop_logs`, two clocks in `test_spark_clocks`: here
all sources have one."""


def test_the_seeds_have_every_step_but_those_tested_elsewhere():
    found = {type(step) for seeds in PACKS for step in flow_of(seeds).steps}
    wanted = {getattr(steps, name) for name in steps.__all__} - {steps.Step} - ELSEWHERE
    assert found == wanted


@pytest.mark.parametrize("seeds", PACKS, ids=lambda seeds: f"seeds {seeds[0]}-{seeds[-1]}")
def test_random_flows_show_in_every_epoch_what_the_simulator_shows(spark, tmp_path, seeds):
    flow = flow_of(seeds)
    write_items(tmp_path, seed=seeds[0])
    wanted, folders = run(spark, tmp_path, flow)
    epochs = [sum(len(lines) for lines in epoch) for epoch in zip(*wanted.values(), strict=True)]
    assert len(epochs) >= 4
    assert all(epochs)
    assert_agreement(wanted, folders)


def test_results_are_the_same_on_other_numbers_of_buckets_and_partitions(
    spark, tmp_path, monkeypatch
):
    """By epochs, too: where a key lies has no meaning."""
    monkeypatch.setattr(runner, "BUCKETS", 3)
    write_items(tmp_path, seed=77)
    wanted, folders = run(spark, tmp_path, flow_of(range(100, 104)), max_bytes=400, partitions=3)
    assert_agreement(wanted, folders)
