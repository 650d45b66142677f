"""Random bodies of loops, with kills, by both plans: input by input what the simulator shows."""

import random
from dataclasses import dataclass, replace

import msgspec
import pytest
from support.spark.agreement import (
    assert_agreement,
    by_input,
    expected,
    input_epochs,
    input_epochs_shown,
)
from support.spark.toy_spark import POINTS, ToySpark, make_job

import cutwater as cw
from cutwater.spark.job.spec import spark_plan
from cutwater.spark.support import check_support


@dataclass(frozen=True)
class Hop:
    key: str
    at: int
    text: str
    left: int
    """So many rounds are before it, at most."""


@cw.task(initial="")
def joined(whole: str, hop: Hop) -> tuple[str, list[Hop]]:
    """Not commutative: all that came to a key, in order."""
    whole = (whole + hop.text)[-9:]
    return whole, [replace(hop, text=whole[-4:])]


@cw.task(initial=0)
def every_other(count: int, hop: Hop) -> tuple[int, list[Hop]]:
    return count + 1, [hop] * (1 + count % 2)


@cw.vectorised(initial=0)
def numbered(seen: int, event: Hop, keys: cw.Keys) -> tuple[int, Hop]:
    counts = keys.running_count(start=seen)
    return keys.last(counts), Hop(event.key, counts, event.text, event.left)


def moved(hop: Hop) -> Hop:
    return replace(hop, key="abcde"[len(hop.text) * 3 % 5])


def spread(hop: Hop) -> list[Hop]:
    return [hop, replace(hop, key=hop.text[:1])] if hop.left % 2 else [hop]


def fewer(hop: Hop) -> list[Hop]:
    return [replace(hop, left=hop.left - 1)] if hop.left else []


def counted(counts) -> Hop:
    return Hop(counts.key, 0, str(counts.n), 0)


SEEDS = range(16)
STAGES = {
    "joined": lambda s, n: s.key_by("key", name=f"key {n}").apply(joined, name=f"joined {n}"),
    "numbered": lambda s, n: s.key_by("key", name=f"key {n}").apply(numbered, name=f"numbered {n}"),
    "in one place": lambda s, n: s.apply(joined, name=f"in one place {n}"),
    "every other": lambda s, n: (
        s.map(moved, name=f"moved {n}")
        .key_by("key", name=f"key {n}")
        .apply(every_other, name=f"every other {n}")
    ),
    "spread": lambda s, n: s.flat_map(spread, name=f"spread {n}"),
    "merged": lambda s, n: s.merge(s.map(moved, name=f"moved {n}"), name=f"merged {n}"),
    "counts": lambda s, n: s.merge(
        s.key_by("key", name=f"key {n}")
        .aggregate(n=cw.agg.count(), emit="epoch", name=f"counts {n}")
        .map(counted, name=f"counted {n}"),
        name=f"with counts {n}",
    ),
    "inner": lambda s, n: s.key_by("key", name=f"key {n}").iterate(
        lambda inner: (
            inner.apply(joined, name=f"inside {n}").flat_map(fewer, name=f"inner fewer {n}"),
            inner,
        ),
        name=f"inner {n}",
    ),
}


def flow_of(seed, plan):
    rng = random.Random(seed)
    stages = [list(STAGES)[seed // 2], *rng.choices(list(STAGES), k=rng.randrange(1, 4))]
    out_after, per_epoch = rng.randrange(len(stages)), seed % 2 == 0

    def body(stream):
        streams = [stream.key_by("key", name="anew").map(moved, name="first")]
        for number, stage in enumerate(stages):
            streams.append(STAGES[stage](streams[-1], number))
        return streams[-1].flat_map(fewer), streams[out_after + 1]

    flow = cw.Flow("random loops")
    hops = flow.source("hops", Hop, time="at", watermark=cw.bounded_delay(1))
    left = hops.iterate(body, plan=plan, state_per_epoch=per_epoch, name="loop")
    flow.sink("out", left.apply(joined, name="all that left"))
    return flow


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
    shown = input_epochs_shown(toy.ends, ["hops"]) if job.topology.logs else numbers
    assert_agreement(wanted, {"out": job.sinks["out"].root}, numbers=shown)
    return wanted, bool(job.topology.logs)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_body_shows_what_the_simulator_shows_by_both_plans(tmp_path, seed):
    by_log, is_cut = run(tmp_path / "log", flow_of(seed, None), seed)
    assert is_cut
    in_one_bucket, is_cut = run(tmp_path / "epoch", flow_of(seed, "epoch"), seed)
    assert not is_cut
    assert any(by_log["out"])
    assert by_log == in_one_bucket


@pytest.mark.parametrize("per_epoch", [True, False])
def test_the_seeds_have_every_stage_with_and_without_a_state_per_epoch(per_epoch):
    steps = (step for seed in SEEDS for step in flow_of(seed, None).steps if step.name == "loop")
    bodies = (loop.body for loop in steps if loop.state_per_epoch == per_epoch)
    names = {step.name[:-2] for body in bodies for step in body}
    assert STAGES.keys() <= names
