"""The machine dies in real time: what was not synced is lost, and the next start goes on.

Plans, snapshots, openings, digests and side outputs lie on the machine; sinks and their ledgers do
not. Spark's own checkpoint of such a query holds nothing of use.
"""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support.faults.disk import Disk
from support.spark.toy_checkpoints import Sale, Total
from support.spark.toy_realtime import Killed, MemorySink, ToyRealTime, toy_job

import cutwater as cw
from cutwater.spark.connectors.base.side_outputs import late_events_sink
from cutwater.spark.connectors.files.sink import Folder

LATE = late_events_sink("sales")
LIVES = 6


@cw.task(initial=0)
def counted(count: int, sale: Sale) -> tuple[int, list[Total]]:
    return count + 1, [Total(sale.shop, count + 1)]


def counting():
    flow = cw.Flow("counting")
    sales = flow.source("sales", Sale, time="at", watermark=cw.bounded_delay(2))
    flow.sink("out", sales.key_by("shop").apply(counted))
    return flow


class Machine:
    """Runs of a flow with late events; each power loss leaves what a disk may hold."""

    def __init__(self, root, seed, monkeypatch):
        self.root, self.rng, self.lives, self.lost = root, random.Random(seed), 0, Counter()
        (root / "checkpoint").mkdir()
        job = toy_job(counting(), root)
        late = Folder(str(root / "checkpoint" / "late-events" / "sales"))
        self.job = replace(job, query_id="toy", engine="realtime", sinks={**job.sinks, LATE: late})
        self.toy = ToyRealTime(
            self.job, self.rng, snapshot_ticks=self.rng.choice([2, 5, 20]), readers=1 + seed % 2
        )
        self.disk, self.sold = Disk(monkeypatch), []

    def sell(self):
        sales = [
            (self.rng.choice("abcde"), self.rng.randrange(9), self.lives + self.rng.choice([0, 3]))
            for _ in range(14)
        ]
        self.sold += sales
        text = "".join(json.dumps({"shop": s, "amount": n, "at": t}) + "\n" for s, n, t in sales)
        (self.root / "in" / "sales" / f"{self.lives:04}").write_text(text)
        self.lives += 1

    def run(self, kill_at=None, **how):
        try:
            self.toy.run(kill_at, **how)
        except Killed:
            return True
        return False

    def lose_power(self):
        lost = self.disk.lose_power(self.root / "checkpoint", self.rng)
        self.lost.update(each.rpartition(": ")[2] for each in lost)

    def published(self):
        """How many events of each shop became rows, or came late."""
        late, job = Counter(), self.toy.job
        for path in Path(job.sinks[LATE].path).glob("epoch=*/*.jsonl"):
            late.update(json.loads(line)["shop"] for line in path.read_text().splitlines())
        shown = MemorySink.shown_rows.get(job.sinks["out"].name, {})
        found = [json.loads(line) for label in sorted(shown) for line in shown[label]]
        counts = {}
        for row in found:
            counts.setdefault(row["shop"], []).append(row["total"])
        for shop, numbers in counts.items():
            assert numbers == list(range(1, len(numbers) + 1)), shop
        return Counter(row["shop"] for row in found) + late


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_nothing_is_lost_or_doubled_when_the_machine_dies(tmp_path, monkeypatch, seed):
    """144 moments: between any two steps of tasks, and of a start itself."""
    machine = Machine(tmp_path, seed, monkeypatch)
    for _ in range(LIVES):
        machine.sell()
        machine.run(kill_at=machine.rng.randrange(1, 90), batch_ends=machine.rng.randrange(2))
        machine.lose_power()
    machine.run()
    assert machine.published() == Counter(shop for shop, _, _ in machine.sold)
    assert machine.lost
    machine.disk.close()
