"""A run in real time notices that an output was restored from a backup behind its checkpoint."""

import copy
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.spark.toy_counting import flow, rows
from support.spark.toy_realtime import MemorySink, ToyRealTime, toy_job

from cutwater.errors import RefusedError
from cutwater.spark.realtime.checkpoint import RealTimeCheckpoint
from cutwater.spark.realtime.opening import newest_opening
from cutwater.spark.realtime.reports import TickReports
from cutwater.spark.recovery import Resumption, recover

SPARK = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
OUTPUT = ("shown_rows", "ledger", "holder")


class World:
    """Runs as a command starts them: recovery, ticks, and what is noted of their release."""

    def __init__(self, root):
        self.draft = replace(toy_job(flow(), root), engine="realtime")
        self.checkpoint = RealTimeCheckpoint(root / "checkpoint")
        self.checkpoint.create()
        self.toy = ToyRealTime(self.draft, random.Random(1), snapshot_ticks=3)

    def put(self, name, items):
        lines = "".join(f'{{"name":"{item}","size":1}}\n' for item in items)
        (Path(self.draft.sources["s0"].path) / name).write_text(lines)

    def run(self, **asked):
        asked = Resumption(partitions=2, **asked)
        job = recover(self.checkpoint, self.draft, asked, SPARK, print)
        self.toy.job = replace(job, generation=job.generation - 1)
        self.toy.run()
        opening = newest_opening(self.checkpoint.root)
        TickReports(self.toy.job, opening, lambda _progress: None).report()

    def shown(self):
        return rows(self.toy.job, "out")


@pytest.fixture
def world(tmp_path, monkeypatch):
    for name in OUTPUT:
        monkeypatch.setattr(MemorySink, name, {})
    return World(tmp_path)


def backup():
    return {name: copy.deepcopy(getattr(MemorySink, name)) for name in OUTPUT}


def restore(kept):
    for name, before in kept.items():
        setattr(MemorySink, name, before)


def test_it_is_refused_until_the_gap_is_accepted(world):
    world.put("0000", "abcabc")
    world.run()
    kept = backup()
    world.put("0001", "abc")
    world.run()
    lost = [row for row in world.shown() if row["count"] > 2]
    assert lost
    restore(copy.deepcopy(kept))
    with pytest.raises(RefusedError, match="output-behind") as refused:
        world.run()
    assert "sink 'out'" in str(refused.value)
    world.run(accept_gap=("out",))
    world.put("0002", "abc")
    world.run()
    assert [row["count"] for row in world.shown() if row["count"] > 2] == [4, 4, 4]


def test_one_as_it_was_left_is_gone_on_with(world):
    world.put("0000", "abcabc")
    world.run()
    restore(backup())
    world.put("0001", "abc")
    world.run()
    assert len(world.shown()) == 9
