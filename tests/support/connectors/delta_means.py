"""A Delta table of means, as tests of the sink write and see it."""

from dataclasses import dataclass
from pathlib import Path

from support.connectors.sink_rows import bucket, claim

from cutwater.observers.delta import DeltaObserver


@dataclass(frozen=True)
class Mean:
    sensor: str
    value: float


def take(table, generation=1, query_id="q", sink="means"):
    table.prepare(sink, Mean)
    table.claim(claim(generation, query_id, sink))
    return claim(generation, query_id, sink)


def stage(table, epoch, *values, generation=1, first=0):
    means = [Mean("s", value) for value in values]
    return table.write(claim(generation), epoch, Mean, [bucket(Mean, means, first=first)])


def seen(table):
    return [row["value"] for row in DeltaObserver(table.path).rows()]


def files(table):
    return {path.name for path in Path(table.path).glob("*.parquet")}
