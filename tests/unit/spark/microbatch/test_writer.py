"""The one writer of all sinks: rows go where they are addressed, in order, epoch by epoch."""

import json
from dataclasses import dataclass

import pytest
from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater.errors import RunError, extract
from cutwater.spark.exchange import batch as batches
from cutwater.spark.exchange.envelope import DATA, ROW_SCHEMA, pack_lines
from cutwater.spark.job.transport import dump_job
from cutwater.spark.microbatch import epochs
from cutwater.spark.microbatch.epochs import epoch_of_task
from cutwater.spark.microbatch.writer import SinksWriter


class Batch:
    def __init__(self, *rows):
        self.rows = rows

    def to_pylist(self):
        return [dict(zip(ROW_SCHEMA.names, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Item:
    name: str


@pytest.fixture
def job(tmp_path):
    flow = cw.Flow("two sinks")
    items = flow.source("items", Item)
    flow.sink("a", items)
    flow.sink("b", items)
    made = make_job(flow, tmp_path)
    for name, sink in made.sinks.items():
        sink.claim(made.claim_of(name))
    return made


@pytest.fixture
def stream(job, monkeypatch):
    monkeypatch.setattr(epochs, "epoch_of_task", lambda: 4)
    return SinksWriter.of(dump_job(job))({}).streamWriter(ROW_SCHEMA, False)


def row(label, target, *entries):
    orders, lines = zip(*entries, strict=True)
    lines = [line + b"\n" for line in lines]
    batch = batches.EventBatch(list(orders), [b""] * len(lines), lines, label=label)
    return (label, target, DATA, pack_lines(batch))


def text(sink, epoch=4):
    return [p.read_text().split() for p in sorted((sink.root / f"epoch={epoch}").glob("*.jsonl"))]


def test_rows_go_to_their_sinks_in_order(job, stream):
    first = row(7, 1, (b"3", b"z"), (b"1", b"x"))
    second = row(9, 1, (b"2", b"y"))
    message = stream.write(iter([Batch(first, row(7, 2, (b"1", b"q"))), Batch(second)]))
    assert not list(job.sinks["a"].root.glob("epoch=*"))
    stream.commit([message], 4)
    assert text(job.sinks["a"]) == [["x", "y", "z"]]
    assert text(job.sinks["b"]) == [["q"]]
    manifest = json.loads((job.sinks["a"].root / "epoch=4" / "_manifest.json").read_text())
    assert manifest["buckets"] == {"7": [2, b"3".hex()], "9": [1, b"2".hex()]}


def test_only_attempts_that_are_named_are_published(job, stream):
    lost = stream.write(iter([Batch(row(7, 1, (b"1", b"twice")))]))
    kept = stream.write(iter([Batch(row(7, 1, (b"1", b"once")))]))
    stream.abort([lost], 4)
    stream.commit([kept, None], 4)
    assert text(job.sinks["a"]) == [["once"]]


def test_an_epoch_without_rows_publishes_nothing(job, stream):
    stream.commit([stream.write(iter([]))], 4)
    assert job.sinks["a"].published() == []


def test_tasks_of_another_epoch_are_refused(job, stream):
    message = stream.write(iter([Batch(row(7, 1, (b"1", b"x")))]))
    with pytest.raises(RuntimeError) as refused:
        stream.commit([message], 5)
    (problem,) = extract(str(refused.value)).problems
    assert problem.code == "epochs-disagree"
    assert job.sinks["a"].published() == []


def test_outside_of_a_task_there_is_no_epoch():
    with pytest.raises(RunError, match="no-epoch"):
        epoch_of_task()
