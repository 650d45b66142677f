"""Every kind of source that we read ourselves, in one query on Spark, against the simulator."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from support.connectors.written import KINDS, written
from support.spark.agreement import assert_agreement, expected, inputs_of, offsets_of

import cutwater as cw
from cutwater import spark as cutwater_spark

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Item:
    name: str
    size: int
    at: int
    note: str | None = None


@dataclass(frozen=True)
class Total:
    name: str
    total: int


@cw.task(initial=0)
def running(total: int, item: Item) -> tuple[int, list[Total]]:
    return total + item.size, [Total(item.name, total + item.size)]


def items(count: int) -> list[Item]:
    notes = [None, 'a "quoted"\nnote, in two lines', "é"]
    return [Item("abc"[n % 3], n, n // 2, notes[n % 3]) for n in range(count)]


def flow_of() -> cw.Flow:
    flow = cw.Flow("all kinds")
    rule = {"time": "at", "watermark": cw.bounded_delay(2)}
    first, *others = (flow.source(kind, Item, **rule) for kind in KINDS)
    merged = first.merge(*others)
    flow.sink("totals", merged.key_by("name").apply(running))
    flow.sink("batches", merged.batch())
    return flow


def test_all_kinds_in_one_query_over_several_runs(spark, tmp_path):
    flow, checkpoint = flow_of(), tmp_path / "checkpoint"
    folders = {sink: tmp_path / "out" / sink for sink in ("totals", "batches")}
    csv = tmp_path / "in" / "CSV"
    csv.mkdir(parents=True)
    (csv / "0.csv").write_text("name,size,at\nonly,two\n")
    for count in (5, 12):
        connectors = {
            kind: written(kind, tmp_path / "in" / kind, items(count), per_file=5, per_epoch=4)
            for kind in KINDS
        }
        result = cutwater_spark.run(
            flow,
            spark,
            sources=connectors,
            sinks=folders,
            checkpoint=checkpoint,
            on_bad_record="skip",
            permute=1,
        )
        assert result.bad_records == {"CSV": 1, "JSON lines": 0, "Parquet": 0, "generator": 0}
    offsets = offsets_of(checkpoint, KINDS)
    inputs = inputs_of(flow, checkpoint, offsets, connectors)
    assert [item for item in inputs["generator"] if isinstance(item, Item)] == items(12)
    wanted = expected(flow, checkpoint, offsets, connectors=connectors)
    assert_agreement(wanted, folders)
    summary = cutwater_spark.describe(checkpoint)
    assert {name: source.kind for name, source in summary.sources.items()} == {n: n for n in KINDS}
    assert summary.sources["Parquet"].read == {"files": 3, "rows": 12}
    (bad,) = (
        json.loads(line)
        for path in (checkpoint / "bad-records" / "CSV").glob("epoch=*/*.jsonl")
        for line in path.read_text().splitlines()
    )
    assert (bad["line"], bad["text"]) == (2, "only,two")


def test_a_dataframe_beside_all_other_kinds(spark, tmp_path):
    """Nobody knows which rows of a DataFrame an epoch has, so only the end is compared."""
    connectors = {
        kind: written(kind, tmp_path / "in" / kind, items(12), per_file=5, per_epoch=4)
        for kind in KINDS
    }
    written("Parquet", tmp_path / "in" / "frame", items(12), per_file=5, per_epoch=4)
    schema = "name string, size long, at long, note string"
    data = spark.readStream.schema(schema).parquet(str(tmp_path / "in" / "frame"))
    flow = cw.Flow("five kinds")
    first, *others = (flow.source(name, Item) for name in [*KINDS, "frame"])
    flow.sink("totals", first.merge(*others).key_by("name").apply(running))
    cutwater_spark.run(
        flow,
        spark,
        sources={**connectors, "frame": cutwater_spark.frame(data, order=["size"])},
        sinks={"totals": tmp_path / "out"},
        checkpoint=tmp_path / "checkpoint",
    )
    totals: dict[str, list[int]] = {}
    for path in (tmp_path / "out").glob("epoch=*/*.jsonl"):
        for line in map(json.loads, path.read_text().splitlines()):
            totals.setdefault(line["name"], []).append(line["total"])
    sums = {name: 5 * sum(i.size for i in items(12) if i.name == name) for name in "abc"}
    assert {name: max(some) for name, some in totals.items()} == sums
    assert {name: len(some) for name, some in totals.items()} == dict.fromkeys("abc", 20)
