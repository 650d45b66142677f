"""One flow on Spark with a sink of each kind, read from outside by observers."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pytest
from support.spark.agreement import expected, offsets_of

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError
from cutwater.observers.delta import DeltaObserver
from cutwater.observers.folder import FolderObserver

pytestmark = pytest.mark.spark

SINKS = ("jsonl", "parquet", "delta", "call")


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@dataclass(frozen=True)
class Total:
    name: str
    total: int
    sizes: list[int]


@cw.task(initial=())
def totals(state: tuple[int, ...], item: Item) -> tuple[tuple[int, ...], list[Total]]:
    state = (*state, item.size)
    return state, [Total(item.name, sum(state), list(state[-3:]))]


def note(path: Path, epoch: int, bucket: int, rows: list[Total]) -> None:
    """A file for each call, as a function outside of the tests would send a request for each."""
    with (path / f"{epoch}-{bucket}").open("a") as file:
        file.writelines(json.dumps(asdict(row)) + "\n" for row in rows)


def refuses(epoch: int, bucket: int, rows: list[Total]) -> None:
    raise ConnectionError("nobody answers")


def flow_of(*sinks: str) -> cw.Flow:
    flow = cw.Flow("every sink")
    shown = flow.source("items", Item).key_by("name").apply(totals)
    for sink in sinks:
        flow.sink(sink, shown)
    return flow


def write_items(path: Path, seed: int, count: int) -> None:
    rng = random.Random(seed)
    items = [Item(f"n{rng.randrange(7)}", rng.randrange(100)) for _ in range(count)]
    path.write_text("".join(json.dumps(asdict(item)) + "\n" for item in items))


def canonical(rows):
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


def by_name(rows):
    found = {}
    for row in rows:
        found.setdefault(row["name"], []).append(row)
    return found


def test_every_sink_shows_the_same_to_its_observer(spark, tmp_path):
    inputs, calls = tmp_path / "in", tmp_path / "calls"
    inputs.mkdir()
    calls.mkdir()
    flow = flow_of(*SINKS)
    sinks = {
        "jsonl": cutwater_spark.folder(str(tmp_path / "jsonl")),
        "parquet": cutwater_spark.folder(str(tmp_path / "parquet"), format="parquet"),
        "delta": cutwater_spark.delta_table(str(tmp_path / "delta"), compact_every=2, keep_hours=0),
        "call": cutwater_spark.call(partial(note, calls)),
    }

    def run(generation):
        write_items(inputs / f"{generation}.jsonl", generation, 60)
        return cutwater_spark.run(
            flow,
            spark,
            sources={"items": cutwater_spark.json_lines(str(inputs), 600)},
            sinks=sinks,
            checkpoint=tmp_path / "checkpoint",
            permute=generation,
        )

    run(1)
    result = run(2)
    assert result.rows == dict.fromkeys(SINKS, 120)
    shown = expected(flow, tmp_path / "checkpoint", offsets_of(tmp_path / "checkpoint", ["items"]))
    epochs = [[json.loads(line) for line in lines] for lines in shown["delta"]]
    everything = [row for rows in epochs for row in rows]
    assert len(epochs) > 4
    for kind in ("jsonl", "parquet"):
        found = FolderObserver(tmp_path / kind).epochs()
        assert {e: canonical(rows) for e, rows in found.items()} == {
            e: canonical(rows) for e, rows in enumerate(epochs)
        }
        assert by_name(FolderObserver(tmp_path / kind).rows()) == by_name(everything)
    assert canonical(DeltaObserver(tmp_path / "delta").rows()) == canonical(everything)
    called = sorted(calls.iterdir(), key=lambda path: int(path.name.split("-")[0]))
    rows = [json.loads(line) for path in called for line in path.read_text().splitlines()]
    assert by_name(rows) == by_name(everything)
    frame = spark.read.parquet(str(tmp_path / "parquet"))
    assert {row["epoch"]: row["count"] for row in frame.groupBy("epoch").count().collect()} == {
        epoch: len(rows) for epoch, rows in enumerate(epochs)
    }
    assert canonical(
        row.asDict() for row in frame.select("name", "total", "sizes").collect()
    ) == canonical(everything)


def test_what_a_function_raises_in_a_task_reaches_the_user_as_a_sentence(spark, tmp_path):
    (tmp_path / "in").mkdir()
    write_items(tmp_path / "in" / "1.jsonl", 1, 3)
    with pytest.raises(RunError) as error:
        cutwater_spark.run(
            flow_of("call"),
            spark,
            sources={"items": str(tmp_path / "in")},
            sinks={"call": cutwater_spark.call(refuses)},
            checkpoint=tmp_path / "checkpoint",
        )
    (problem,) = error.value.problems
    assert problem.code == "call-failed"
    assert "refuses (test_spark_sinks.py:" in problem.message
    assert "ConnectionError: nobody answers" in problem.message


def test_an_output_whose_checkpoint_was_deleted_is_refused_or_taken_over(spark, tmp_path):
    (tmp_path / "in").mkdir()
    write_items(tmp_path / "in" / "1.jsonl", 1, 3)
    told = []

    def run(checkpoint, **others):
        return cutwater_spark.run(
            flow_of("parquet", "delta"),
            spark,
            sources={"items": str(tmp_path / "in")},
            sinks={
                "parquet": cutwater_spark.folder(str(tmp_path / "parquet"), format="parquet"),
                "delta": cutwater_spark.delta_table(str(tmp_path / "delta")),
            },
            checkpoint=tmp_path / checkpoint,
            notify=told.append,
            **others,
        )

    def seen():
        delta, parquet = DeltaObserver(tmp_path / "delta"), FolderObserver(tmp_path / "parquet")
        return [sorted(row["total"] for row in shown.rows()) for shown in (delta, parquet)]

    run("first")
    (totals, _) = seen()
    with pytest.raises(RunError) as error:
        run("second")
    assert [problem.code for problem in error.value.problems] == ["another-checkpoint"] * 2
    assert seen() == [totals] * 2
    assert not (tmp_path / "second").exists()
    assert run("second", adopt=True).rows == {"parquet": 3, "delta": 3}
    assert seen() == [sorted(totals * 2)] * 2
    assert sum("another checkpoint; its rows are kept" in message for message in told) == 2
    for way in ({}, {"adopt": True}, {"fresh": True}):
        with pytest.raises(RunError, match="another-checkpoint"):
            run("first", **way)
    assert run("second", fresh=True).epochs == 0
    assert seen() == [sorted(totals * 2)] * 2
    assert run("third", fresh=True).rows == {"parquet": 3, "delta": 3}
    assert seen() == [totals] * 2
