"""Random bodies of loops, with kills, by both plans: input by input what the simulator shows."""

import random

import msgspec
import pytest
from support.flows.random_loops import SEEDS, STAGES, Hop, random_loop
from support.spark.agreement import (
    assert_agreement,
    by_input,
    expected,
    input_epochs,
    input_epochs_shown,
)
from support.spark.toy_spark import POINTS, ToySpark, make_job

from cutwater.spark.job.spec import spark_plan
from cutwater.spark.support import check_support


def run(root, flow, seed):
    rng = random.Random(seed)
    check_support(spark_plan(flow))
    job = make_job(
        flow,
        root,
        feeds_back=True,
        max_bytes_per_epoch=1,
        permute=seed,
        buckets=rng.choice([1, 2, 16]),
    )
    for number in range(4):
        hops = [
            Hop(rng.choice("abc"), number + rng.randrange(2), rng.choice("xyz"), rng.randrange(4))
            for _ in range(rng.randrange(1, 4))
        ]
        lines = b"".join(msgspec.json.encode(hop) + b"\n" for hop in hops)
        (root / "in" / "hops" / str(number)).write_bytes(lines)
    kills = [rng.choice([*POINTS, "never", "never"]) for _ in range(12)]
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, seed)
        toy.run_to_the_end(kills, close=True)
    numbers = input_epochs(toy.ends, ["hops"])
    wanted = expected(flow, root / "checkpoint", by_input(toy.offsets, numbers), is_closed=True)
    shown = input_epochs_shown(toy.ends, ["hops"]) if job.loops.logs else numbers
    assert_agreement(wanted, {"out": job.sinks["out"].root}, numbers=shown)
    return wanted, bool(job.loops.logs)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_body_shows_what_the_simulator_shows_by_both_plans(tmp_path, seed):
    by_log, is_cut = run(tmp_path / "log", random_loop(seed, None), seed)
    assert is_cut
    in_one_bucket, is_cut = run(tmp_path / "epoch", random_loop(seed, "epoch"), seed)
    assert not is_cut
    assert any(by_log["out"])
    assert by_log == in_one_bucket


@pytest.mark.parametrize("per_epoch", [True, False])
def test_the_seeds_have_every_stage_with_and_without_a_state_per_epoch(per_epoch):
    steps = (
        step for seed in SEEDS for step in random_loop(seed, None).steps if step.name == "loop"
    )
    bodies = (loop.body for loop in steps if loop.state_per_epoch == per_epoch)
    names = {step.name[:-2] for body in bodies for step in body}
    assert STAGES.keys() <= names
