"""Idle sources on our runtime: the simulation with the watermarks that their logs say they took.

Whatever is killed and whenever, a decision is made once. A watermark that the simulation is given
takes effect within its epoch, one that is followed after it; windows show the same either way.
"""

import json
import os
import random
from collections import Counter
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.spark.agreement import expected, inputs_of, parts_of
from support.spark.toy_spark import POINTS, Killed, ToySpark, make_job

import cutwater as cw
from cutwater.spark.microbatch.source_reader import EpochDataSource


@dataclass(frozen=True)
class Item:
    name: str
    at: int


def flow_of_quiet_sources():
    flow = cw.Flow("quiet")
    rule = cw.bounded_delay(2)
    a, b, c = (flow.source(name, Item, time="at", watermark=rule) for name in "abc")
    together = a.merge(b, c).key_by("name")
    flow.sink("windows", together.window(cw.tumbling(10)).aggregate(n=cw.agg.count()))
    pair = a.merge(b, name="pair").key_by("name", name="pair by name").window(cw.tumbling(5))
    flow.sink("pair", pair.aggregate(n=cw.agg.count(), name="pair counts"))
    alone = c.key_by("name", name="by name").window(cw.tumbling(5))
    flow.sink("alone", alone.aggregate(n=cw.agg.count(), name="counts"))
    return flow


a_round = st.tuples(
    st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 12), max_size=4), max_size=2),
    st.sampled_from([0, 3, 5, 20]),
    st.lists(st.sampled_from(POINTS), max_size=3),
)


@settings(max_examples=40)
@given(rounds=st.lists(a_round, min_size=1, max_size=6), seed=st.integers(0, 1000))
def test_every_epoch_is_the_simulators(tmp_path_factory, rounds, seed):
    """In each round files arrive, time passes, and a run catches up that may be killed."""
    root = tmp_path_factory.mktemp("idle")
    flow = flow_of_quiet_sources()
    job = make_job(flow, root, max_bytes_per_epoch=60)
    limits = {"a": 5, "b": 10}
    job = replace(
        job, sources={n: replace(s, idle_after=limits.get(n)) for n, s in job.sources.items()}
    )
    now = 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpochDataSource, "now", staticmethod(lambda: now))
        for name in job.sources:
            log = root / "checkpoint" / "sources" / name
            log.mkdir(parents=True)
            (log / "began").touch()
            os.utime(log / "began", (0, 0))
        toy = ToySpark(job, patch, seed)
        rng = random.Random(seed)
        for number, (files, passes, kills) in enumerate(rounds):
            now += passes
            for name, times in files.items():
                lines = [{"name": rng.choice("xy"), "at": 8 * number + at} for at in times]
                text = "".join(json.dumps(line) + "\n" for line in lines)
                (root / "in" / name / f"{number}").write_text(text)
            toy.start()
            toy.run_to_the_end(kills)
        checkpoint = root / "checkpoint"
        wanted = expected(flow, checkpoint, toy.offsets)
        for sink, epochs in wanted.items():
            parts = parts_of(root / "out" / sink)
            for epoch, lines in enumerate(epochs):
                found = [line for part in parts.get(epoch, []) for line in part]
                assert Counter(found) == Counter(lines), f"{sink}, epoch {epoch}"
        if toy.offsets:
            late = cw.simulate(flow, inputs_of(flow, checkpoint, toy.offsets)).late
            kept = {name: parts_of(root / "late" / name).values() for name in late}
            assert dict(late) == {
                name: sum(len(part) for parts in kept[name] for part in parts) for name in kept
            }


def test_a_quiet_source_holds_the_others_back_no_longer(tmp_path):
    """And what comes from it after all is late."""
    flow = flow_of_quiet_sources()
    job = make_job(flow, tmp_path, max_bytes_per_epoch=1 << 20)
    job = replace(job, sources={n: replace(s, idle_after=5) for n, s in job.sources.items()})
    now = 0.0

    def put(source, name, *times):
        text = "".join(json.dumps({"name": "x", "at": at}) + "\n" for at in times)
        (tmp_path / "in" / source / name).write_text(text)

    def windows():
        parts = [
            part for parts in parts_of(tmp_path / "out" / "windows").values() for part in parts
        ]
        return [json.loads(line) for part in parts for line in part]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpochDataSource, "now", staticmethod(lambda: now))
        toy = ToySpark(job, patch, seed=1)
        for source, at in (("a", 3), ("b", 3), ("c", 3)):
            put(source, "1", at)
        toy.start()
        toy.run_to_the_end([])
        now = 4.0
        put("c", "2", 35)
        toy.start()
        toy.run_to_the_end([])
        assert windows() == []
        now = 6.0
        toy.start()
        with pytest.raises(Killed):
            toy.run("logged")
        toy.start()
        toy.run_to_the_end([])
        assert [row["n"] for row in windows()] == [3]
        put("a", "2", 9, 34)
        toy.start()
        toy.run_to_the_end([])
    (late,) = (part for parts in parts_of(tmp_path / "late" / "a").values() for part in parts)
    assert [json.loads(line)["at"] for line in late] == [9]
