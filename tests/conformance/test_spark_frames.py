"""A flow inside a PySpark job: DataFrames in, a DataFrame out, epoch by epoch as simulated."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from support.spark.agreement import parts_of

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import InputError, RunError, extract
from cutwater.spark import runner
from cutwater.spark.state.partitions import SETTING, shuffling_to

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Item:
    name: str
    size: int
    weight: float = 0.5


@dataclass(frozen=True)
class Digest:
    name: str
    digest: int


@cw.task(initial=0)
def digest(state: int, item: Item) -> tuple[int, list[Digest]]:
    """Order-sensitive."""
    state = (31 * state + item.size) % 9973
    return state, [Digest(item.name, state)]


@cw.vectorised(initial=0)
def digests(state: int, item: Item, keys: cw.Keys) -> tuple[int, cw.Emit[Digest]]:
    """`digest` of many at once; the even ones are shown."""
    state, seen = state.copy(), np.zeros(len(keys), int)
    for now in keys.rounds():
        of = keys.of[now]
        state[of] = seen[now] = (31 * state[of] + item.size[now]) % 9973
    return state, cw.Emit(seen % 2 == 0, Digest(item.name, seen))


def is_odd(item: Item) -> bool:
    return item.size % 2 == 1


def everything(name="everything", behind=None):
    flow = cw.Flow(name)
    items = flow.source("items", Item)
    keyed = items.filter(is_odd).key_by("name")
    flow.sink("task", keyed.apply(digest))
    flow.sink("vectorised", keyed.apply(digests))
    total = {"n": cw.agg.count(), "total": cw.agg.sum("size")}
    flow.sink(
        "per_epoch", items.key_by("name", name="k").aggregate(name="e", emit="epoch", **total)
    )
    weight = {"heavy": cw.agg.sum("weight"), "last": cw.agg.last("size")}
    flow.sink("per_event", keyed.aggregate(name="a", **weight))
    flow.sink("anew", keyed.apply(digests, name="d").key_by("digest").apply(behind or again))
    return flow


@cw.task(initial=0)
def again(seen: int, item: Digest) -> tuple[int, list[int]]:
    return seen + 1, [seen + 1]


@cw.task(initial="", name="again")
def changed(seen: str, item: Digest) -> tuple[str, list[int]]:
    return seen, [1]


def items_of(epoch):
    return [Item("abcdefg"[n % 7], n * n % 50, n / 8) for n in range(40 * epoch, 40 * epoch + 40)]


COLUMNS = pa.schema(
    [("name", pa.string()), ("size", pa.int32()), ("weight", pa.float64()), ("at", pa.int64())]
)


def put(root, epoch, items):
    """A file for an epoch, in which rows are out of order; files are read by their age."""
    folder = root / "in"
    folder.mkdir(exist_ok=True)
    rows = [{**asdict(item), "at": at} for at, item in enumerate(items)]
    rows.sort(key=lambda row: row["at"] * 7 % 11)
    path = folder / f"{epoch}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, COLUMNS), folder / ".new")
    os.utime(folder / ".new", (1_000_000 + epoch, 1_000_000 + epoch))
    (folder / ".new").rename(path)


def frame(spark, root, order=("at",)):
    schema = "name string, size int, weight double, at bigint"
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return cutwater_spark.frame(reader.parquet(str(root / "in")), order=list(order))


@pytest.fixture(autouse=True)
def two_partitions(spark):
    with shuffling_to(spark, 2):
        yield


def epochs_of(spark, root, flow, **settings):
    """The rows of each epoch that a query of the flow finished, written by its user."""
    found = {}
    shown = cutwater_spark.transform(
        flow, {"items": frame(spark, root, **settings)}, checkpoint=root / "checkpoint"
    )
    writer = shown.writeStream.foreachBatch(
        lambda rows, epoch: found.update({epoch: rows.collect()})
    )
    writer = writer.option("checkpointLocation", str(root / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return found


def simulated(flow, epochs):
    inputs = [item for items in epochs for item in (*items, cw.BARRIER)]
    return cw.simulate(flow, {"items": inputs})


def assert_epoch(rows, result, epoch):
    """Each row has the record of one sink; keys are told apart by what is order-sensitive."""
    for sink in result.events:
        found = [tuple(row[sink]) for row in rows if row[sink] is not None]
        wanted = [_fields(value) for value in result.by_epoch(sink)[epoch]]
        assert Counter(found) == Counter(wanted), f"{sink}, epoch {epoch}"


def _fields(value):
    return (value,) if isinstance(value, int) else tuple(vars(value).values())


def test_a_dataframe_shows_in_every_epoch_what_the_simulator_shows(spark, tmp_path):
    """Of a task, a vectorised one and aggregates; also after a restart, and not when changed."""
    epochs = [items_of(0), items_of(1), items_of(2)]
    for number, items in enumerate(epochs[:2]):
        put(tmp_path, number, items)
    first = epochs_of(spark, tmp_path, everything())
    put(tmp_path, 2, epochs[2])
    second = epochs_of(spark, tmp_path, everything())
    assert (sorted(first), sorted(second)) == ([0, 1], [2])
    result = simulated(everything(), epochs)
    for number, rows in (first | second).items():
        assert_epoch(rows, result, number)
    kept = cutwater_spark.read_state(tmp_path / "checkpoint", "digest", spark, epoch=2)
    states = {row["key"]: row["state"] for row in kept.rows}
    last = {shown.name: shown.digest for shown in result["task"]}
    assert states == last
    with pytest.raises(RunError) as error:
        epochs_of(spark, tmp_path, everything(behind=changed))
    assert "the state of step 'again' was int and is str" in str(error.value)


def stateless():
    flow = cw.Flow("stateless")
    flow.sink("out", flow.source("items", Item).filter(is_odd))
    return flow


def test_a_stateless_flow_without_an_order_is_a_dataframe(spark, tmp_path):
    put(tmp_path, 0, items_of(0))
    (rows,) = epochs_of(spark, tmp_path, stateless(), order=()).values()
    wanted = [item for item in items_of(0) if is_odd(item)]
    assert Counter(map(tuple, rows)) == Counter(_fields(item) for item in wanted)


def counted():
    flow = cw.Flow("counted")
    items = flow.source("items", Item).key_by("name")
    flow.sink("out", items.aggregate(n=cw.agg.count(), emit="epoch"))
    return flow


def test_a_run_reads_a_dataframe_in_the_session_it_belongs_to(spark, tmp_path, monkeypatch):
    """Without an order, too; a folder takes what comes out."""

    def no_session(*_args, **_settings):
        raise AssertionError("there is a session")

    monkeypatch.setattr(runner, "embedded_session", no_session)
    epochs = [items_of(0), items_of(1)]
    for number, items in enumerate(epochs):
        put(tmp_path, number, items)
    result = cutwater_spark.run(
        counted(),
        spark,
        sources={"items": frame(spark, tmp_path, order=())},
        sinks={"out": tmp_path / "out"},
        checkpoint=tmp_path / "checkpoint",
    )
    assert (result.epochs, result.rows) == (2, {"out": 14})
    wanted = simulated(counted(), epochs)
    for number, parts in parts_of(tmp_path / "out").items():
        lines = Counter(line for part in parts for line in part)
        encoded = [
            f'{{"name":"{r.name}","n":{r.n}}}'.encode() for r in wanted.by_epoch("out")[number]
        ]
        assert lines == Counter(encoded)


NULL = "[null-in-a-field] source 'items' has a row without 'size', which is declared int"


def test_an_empty_place_in_a_field_is_reported(spark, tmp_path):
    put(tmp_path, 0, [Item("a", None)])
    with pytest.raises(InputError) as error:
        cutwater_spark.run(
            counted(),
            spark,
            sources={"items": frame(spark, tmp_path)},
            sinks={"out": tmp_path / "out"},
            checkpoint=tmp_path / "run",
        )
    assert str(error.value).startswith(NULL)
    with pytest.raises(StreamingQueryException) as raised:
        epochs_of(spark, tmp_path, stateless())
    assert str(extract(str(raised.value))).startswith(NULL)


def test_what_cannot_be_a_dataframe_is_refused_before_anything_is_written(spark, tmp_path):
    (tmp_path / "in").mkdir()
    source = {"items": frame(spark, tmp_path)}
    flow = cw.Flow("unknown")
    flow.sink("out", flow.source("items", Item).map(lambda item: item))
    with pytest.raises(RunError, match="no-column-type"):
        cutwater_spark.transform(flow, source, checkpoint=tmp_path / "checkpoint")
    spark.conf.set(SETTING, "5")
    with pytest.raises(RunError, match=f"set {SETTING} before"):
        cutwater_spark.transform(stateless(), source, checkpoint=tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    with pytest.raises(RunError, match="foreign-checkpoint"):
        cutwater_spark.transform(stateless(), source, checkpoint=tmp_path / "checkpoint")
