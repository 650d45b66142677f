"""Rows of a DataFrame are the records of a source, in the order that the DataFrame says."""

import datetime as dt
from collections import Counter
from dataclasses import asdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types
from support.flows.random_flows import VERBS, Item, RandomSource, RandomStep, Recipe
from support.spark.toy_frames import ToyFrames

import cutwater as cw
from cutwater.errors import extract
from cutwater.spark.connectors.dataframe.checks import frame_problems
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.exchange.envelope import ARROW_SCHEMA
from cutwater.spark.microbatch import dataframes as frames
from cutwater.spark.microbatch.dataframes import _Shown

GOING_BY_TIMES = {
    "accumulate", "batch", "bulk", "histogram", "join", "map_values", "on_complete", "operator",
}  # fmt: skip
TIMELESS = sorted({*VERBS} - GOING_BY_TIMES)
NUMBERED = [("offset", pa.int64())]
ITEMS = st.builds(Item, st.sampled_from("abc"), st.just(0), st.integers(0, 4))
DAYS = st.datetimes(dt.datetime(1960, 1, 1), dt.datetime(2030, 1, 1), timezones=st.just(dt.UTC))
# columns that say the order, and what they hold
ORDERS = {
    "whole numbers": ([("offset", pa.int64())], st.tuples(st.integers(-(2**63), 2**63 - 1))),
    "short numbers": ([("offset", pa.int32())], st.tuples(st.integers(-300, 300))),
    "moments": ([("read", pa.timestamp("us", tz="UTC"))], st.tuples(DAYS)),
    "text": ([("file", pa.string())], st.tuples(st.text("ab\x00\uffff", max_size=4))),
    "days": ([("day", pa.date32())], st.tuples(st.dates())),
    "partition and offset": (
        [("partition", pa.int32()), ("offset", pa.int64())],
        st.tuples(st.integers(0, 3), st.integers(-5, 5)),
    ),
    "file and number": (
        [("file", pa.string()), ("number", pa.int64())],
        st.tuples(st.text("ab\x00", max_size=2), st.integers(-300, 300)),
    ),
}


@st.composite
def recipes(draw):
    names = draw(st.permutations("xy"))[: draw(st.integers(1, 2))]
    sources = tuple(RandomSource(name, "numbered", 0, ()) for name in names)
    steps = []
    for number in range(draw(st.integers(1, 5))):
        verb = draw(st.sampled_from(TIMELESS))
        _, inputs, variants = VERBS[verb]
        here = len(sources) + number
        stream = st.just(here - 1) | st.integers(0, here - 1)
        reads = tuple(draw(stream) for _ in range(inputs))
        steps.append(RandomStep(verb, reads, draw(st.integers(0, variants - 1))))
    return Recipe(sources, tuple(steps))


@st.composite
def placed(draw, places):
    """Items with places, none twice, as tasks of batches."""
    found = draw(st.lists(places, unique=True, max_size=8))
    items = [(place, draw(ITEMS)) for place in found]
    cuts = draw(st.lists(st.integers(0, 2), min_size=len(items), max_size=len(items)))
    return [[item for item, c in zip(items, cuts, strict=True) if c == task] for task in range(3)]


def batch_of(items, columns):
    """Items with their places as a batch, as Spark gives it."""
    records = pa.Table.from_pylist(
        [asdict(item) for _, item in items],
        pa.schema([(n, pa.string() if n == "name" else pa.int64()) for n in Item.__annotations__]),
    )
    places = [[place[n] for place, _ in items] for n in range(len(columns))]
    for (name, tp), values in zip(columns, places, strict=True):
        records = records.append_column(name, pa.array(values, tp))
    return records.combine_chunks().to_batches()[0]


def batches_of(items, columns, size):
    cut = [items[n : n + size] for n in range(0, len(items), size)]
    return [batch_of(part, columns) for part in cut]


def in_order(tasks):
    return [item for _, item in sorted(entry for task in tasks for entry in task)]


@given(recipes(), st.sampled_from(sorted(ORDERS)), st.integers(1, 4), st.data())
def test_any_flow_over_dataframes_shows_what_the_simulator_shows(recipe, order, size, data):
    columns, places = ORDERS[order]
    names = [source.name for source in recipe.sources]
    epochs = [
        {name: data.draw(placed(places), label=f"{name} {number}") for name in names}
        for number in range(2)
    ]
    flow = recipe.flow()
    inputs = {n: [i for e in epochs for i in (*in_order(e[n]), cw.BARRIER)] for n in names}
    wanted = cw.simulate(flow, inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "FRAME_BATCH_ROWS", 2 * size)
        toy = ToyFrames(flow, [name for name, _ in columns], patch)
        for number, epoch in enumerate(epochs):
            given = {n: [batches_of(t, columns, size) for t in tasks] for n, tasks in epoch.items()}
            for sink, records in toy.records(given).items():
                expected = wanted.by_epoch(sink)[number]
                assert Counter(map(repr, records)) == Counter(map(repr, expected)), sink


@cw.task(initial=0)
def count(seen: int, item: Item) -> tuple[int, list[Item]]:
    return seen + 1, [Item(item.name, item.at, seen + 1)]


def is_never(_item: Item) -> bool:
    return False


def counting(*, before=None, type=Item):
    flow = cw.Flow("counting")
    items = flow.source("items", type)
    items = items.filter(before) if before else items
    flow.sink("out", items.key_by("name").apply(count))
    return flow


def run(flow, monkeypatch, *batches, order=()):
    toy = ToyFrames(flow, order, monkeypatch)
    return toy.records({"items": [batches]})["out"]


ABC = [((n,), Item("abc"[n % 3], n, 0)) for n in range(6)]


def test_without_an_order_rows_are_taken_as_they_come(monkeypatch):
    records = run(counting(), monkeypatch, batch_of(ABC[3:], []), batch_of(ABC[:3], []))
    a = [(item.at, item.size) for item in records if item.name == "a"]
    assert a == [(3, 1), (0, 2)]


def test_of_a_batch_nothing_may_be_left(monkeypatch):
    """In front of a task and behind it."""
    batch = batch_of(ABC, NUMBERED)
    assert run(counting(before=is_never), monkeypatch, batch, order=["offset"]) == []
    assert run(counting(before=is_never), monkeypatch, order=["offset"]) == []
    flow = cw.Flow("flow")
    keyed = flow.source("items", Item).key_by("name")
    flow.sink("out", keyed.apply(never).apply(never, name="again").filter(is_never))
    assert run(flow, monkeypatch, batch, order=["offset"]) == []


@cw.vectorised(initial=0)
def never(seen: int, item: Item, keys: cw.Keys) -> tuple[int, cw.Emit[Item]]:
    return seen + keys.count(), cw.Emit(item.size < 0, item)


def test_a_stateless_flow_needs_no_level(monkeypatch):
    flow = cw.Flow("stateless")
    items = flow.source("items", Item)
    flow.sink("out", items)
    flow.sink("some", items.filter(is_early).map(name_of))
    toy = ToyFrames(flow, [], monkeypatch)
    batch = batch_of(ABC, [])
    assert toy.job.topology.levels == []
    assert toy.records({"items": [[batch, batch], [batch]]}) == {
        "out": [item for _ in range(3) for _, item in ABC],
        "some": ["a", "b"] * 3,
    }


def is_early(item: Item) -> bool:
    return item.at < 2


def name_of(item: Item) -> str:
    return item.name


def sentence(flow, monkeypatch, batch, order):
    with pytest.raises(RuntimeError) as error:
        run(flow, monkeypatch, batch, order=order)
    return str(extract(str(error.value)))


@pytest.mark.parametrize("columns", [NUMBERED, [("file", pa.string())]], ids=str)
def test_a_row_without_a_place_is_reported(monkeypatch, columns):
    """It would stand in one place or in another, by which rows come in a batch with it."""
    (name, _), *_ = columns
    batch = batch_of([((None,), Item("a", 0, 0))], columns)
    assert sentence(counting(), monkeypatch, batch, [name]) == (
        f"[null-in-an-order] source 'items' has a row without '{name}', which is the position of a "
        "row\n  hint: filter such rows out before, or name other columns in order"
    )


def test_a_row_without_a_field_is_reported(monkeypatch):
    batch = batch_of([((1,), Item(None, 0, 0))], NUMBERED)
    assert sentence(counting(), monkeypatch, batch, ["offset"]) == (
        "[null-in-a-field] source 'items' has a row without 'name', which is declared str\n"
        "  hint: declare it str | None, or filter such rows out before"
    )


# What the sinks show


def two_sinks():
    flow = cw.Flow("two sinks")
    items = flow.source("items", Item)
    flow.sink("counts", items.key_by("name").apply(count))
    flow.sink("sizes", items.map(size_of))
    return flow


def size_of(item: Item) -> int:
    return item.size


def shown(flow, monkeypatch, batch):
    toy = ToyFrames(flow, ["offset"], monkeypatch)
    rows = [row.asDict() for row in toy.epoch({"items": [[batch]]})]
    batches = _Shown(toy.data)(iter([pa.RecordBatch.from_pylist(rows, ARROW_SCHEMA)]))
    table = pa.Table.from_batches(batches)
    assert table.schema == frames._shown_schema(toy.job)
    return table.to_pylist()


def test_the_records_of_one_sink_are_rows(monkeypatch):
    found = shown(counting(), monkeypatch, batch_of(ABC, NUMBERED))
    assert sorted((row["name"], row["at"], row["size"]) for row in found) == [
        (item.name, item.at, 1 + item.at // 3) for item in sorted((i for _, i in ABC), key=by_name)
    ]


def by_name(item):
    return item.name, item.at


def test_of_several_sinks_each_row_has_one(monkeypatch):
    found = shown(two_sinks(), monkeypatch, batch_of(ABC[:1], NUMBERED))
    assert sorted(found, key=repr) == [
        {"counts": None, "sizes": {"value": 0}},
        {"counts": {"name": "a", "at": 0, "size": 1, "digest": 0}, "sizes": None},
    ]


# Which DataFrames can be sources


SPARK_TYPES = {
    "string": spark_types.StringType(),
    "smallint": spark_types.ShortType(),
    "int": spark_types.IntegerType(),
    "bigint": spark_types.LongType(),
    "double": spark_types.DoubleType(),
    "binary": spark_types.BinaryType(),
}


def schema_of(words):
    """What ``"name string, at int"`` says, without a JVM."""
    pairs = [column.split() for column in words.split(", ")]
    return spark_types.StructType(
        [spark_types.StructField(name, SPARK_TYPES[tp]) for name, tp in pairs]
    )


class Streaming(DataFrame):
    """As much of a streaming DataFrame as is looked at before a run."""

    def __new__(cls, *_args, **_settings):
        return object.__new__(cls)

    def __init__(self, schema, is_streaming=True):
        self._schema, self._is_streaming = schema, is_streaming

    @property
    def schema(self):
        return schema_of(self._schema)

    @property
    def isStreaming(self):
        return self._is_streaming


ITEM = "name string, at int, size bigint, digest smallint"


def problems(data, order=(), type=Item):
    flow = cw.Flow("flow")
    flow.source("items", type)
    return "\n".join(map(str, frame_problems(flow.steps[0], Frame(data, order))))


def test_a_dataframe_that_fits_is_taken():
    assert problems(Streaming(f"{ITEM}, more binary, offset bigint"), ["offset"]) == ""
    assert problems(Streaming("value string"), type=str) == ""
    assert problems(Streaming("value double"), type=float) == ""


@pytest.mark.parametrize(
    "data",
    [Streaming(ITEM, is_streaming=False), "a folder", None],
    ids=["all at once", "text", "none"],
)
def test_what_is_no_stream_is_refused(data):
    assert problems(data) == (
        f"[not-a-stream] source 'items' is bound to {type(data).__name__}, which is not a "
        "streaming DataFrame\n  hint: make it with spark.readStream"
    )


@pytest.mark.parametrize(
    ("schema", "order", "missing"),
    [
        ("name string, at int", [], "size"),
        (ITEM, ["offset"], "offset"),
        ("value string", [], "name"),
    ],
)
def test_a_missing_column_is_refused(schema, order, missing):
    names = ", ".join(schema_of(schema).names)
    assert problems(Streaming(schema), order) == (
        f"[missing-column] source 'items' needs the column '{missing}'; the DataFrame has: {names}"
        "\n  hint: rename the columns of the DataFrame: select, withColumnRenamed"
    )


def test_columns_of_another_type_are_refused_all_at_once():
    schema = "name string, at string, size double, digest int"
    assert problems(Streaming(schema)) == "\n".join(
        f"[column-of-another-type] column '{name}' of source 'items' is {found}; the record "
        f"declares it as int\n  hint: cast the column, or correct the annotation: {found} is {tp}"
        for name, found, tp in (("at", "string", "str"), ("size", "double", "float"))
    )
