"""Checkpoints of the real-time engine, as runs without Spark leave them."""

import contextlib
import json
import random
from dataclasses import dataclass, replace
from pathlib import Path

from support.spark.toy_realtime import Killed, ToyRealTime, toy_job

import cutwater as cw
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.realtime.checkpoint import RealTimeCheckpoint
from cutwater.spark.telemetry.topology import topology_of, write_topology


@dataclass(frozen=True)
class Sale:
    shop: str
    amount: int
    at: int


@dataclass(frozen=True)
class Total:
    shop: str
    total: int


@cw.task(initial=0)
def sold(total: int, sale: Sale) -> tuple[int, list[Total]]:
    return total + sale.amount, [Total(sale.shop, total + sale.amount)]


@cw.task(initial=0)
def changes(count: int, total: Total) -> tuple[int, list[Total]]:
    return count + 1, [Total(total.shop, count + 1)]


def sales_flow():
    """Two levels with a state each, over a source with a watermark."""
    flow = cw.Flow("sales")
    sales = flow.source("sales", Sale, time="at", watermark=cw.bounded_delay(2))
    totals = sales.key_by("shop").apply(sold)
    flow.sink("out", totals.key_by("shop").apply(changes))
    return flow


class Checkpointed:
    """A folder with a run that may be killed, and its checkpoint."""

    def __init__(self, root: Path, **how):
        self.root = root
        job = replace(toy_job(sales_flow(), root), query_id="toy", engine="realtime")
        self.toy = ToyRealTime(job, random.Random(7), **how)
        self.checkpoint = RealTimeCheckpoint(root / "checkpoint")
        self.checkpoint.create()
        write_topology(self.checkpoint.root, topology_of(job))

    def sell(self, number, sales):
        """More input: shops, amounts and times."""
        lines = "".join(json.dumps({"shop": s, "amount": a, "at": t}) + "\n" for s, a, t in sales)
        (self.root / "in" / "sales" / f"{number:04}").write_text(lines)

    def run(self, kill_at=None, **how):
        with contextlib.suppress(Killed):
            self.toy.run(kill_at=kill_at, **how)
        identity = identity_of(self.toy.job, self.toy.partitions)
        self.checkpoint.save(replace(identity, generation=self.toy.job.generation))
