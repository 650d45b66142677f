"""Hostile records in files and from generators; see `hostile_records`."""

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.connectors.hostile_records import (
    HUGE,
    LONE,
    Item,
    among_neighbours,
    assert_carried_or_refused,
    hostile_items,
    in_json,
    lines_in,
    mutated,
    mutations,
    read_json,
)
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.spark import folder
from cutwater.spark.connectors.base.side_outputs import bad_records_sink
from cutwater.spark.connectors.files.csv_source import Csv
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.parquet_source import Parquet
from cutwater.spark.connectors.generator.source import Generated


@dataclass(frozen=True)
class Timed:
    id: int
    at: float | int | Decimal


@pytest.mark.parametrize("time", [math.nan, 2**127, -(2**64), Decimal("NaN"), Decimal("sNaN")])
@pytest.mark.parametrize("first", [0, 1])
def test_a_time_that_has_no_place_makes_a_bad_record(tmp_path, time, first):
    rows = [Timed(0, 1), Timed(1, time), Timed(2, 5)][first:]
    flow = cw.Flow("times")
    at = flow.source("items", Timed, time="at", watermark=cw.bounded_delay(1))
    flow.sink("out", at.batch())
    job = make_job(
        flow, tmp_path, sources={"items": Generated(Rows(rows), len(rows))}, skip_bad_records=True
    )
    side_output = {bad_records_sink("items"): folder(str(tmp_path / "bad"))}
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(replace(job, sinks={**job.sinks, **side_output}), patch, seed=1)
        toy.run_to_the_end([], close=True)
    assert [kept["row"] for kept in lines_in(tmp_path / "bad")] == [1 - first]
    batches = json.dumps(lines_in(tmp_path / "out" / "out"))
    assert re.findall(r'"id": (\d)', batches) == ["0", "2"][first:]


# JSON lines


@given(hostile_items, mutations)
@example([Item(1, HUGE), Item(3, LONE), Item(5, "", 2**127), Item(7, "", 0, math.nan)], [])
def test_json_lines(tmp_path_factory, items, changes):
    lines = [mutated(in_json(item), changes) for item in items]
    if any(not line.strip() for line in lines):
        return

    def make(root):
        (root / "in").mkdir(exist_ok=True)
        all_lines, _ = among_neighbours(lines, in_json)
        (root / "in" / "a.jsonl").write_bytes(b"\n".join(all_lines))
        return JsonLines(str(root / "in"))

    _, neighbours = among_neighbours(lines, in_json)
    hostile = read_json(lines, neighbours)
    if hostile is not None:
        assert_carried_or_refused(tmp_path_factory.mktemp("json"), make, hostile, neighbours)


DEEP = 100_000


@pytest.mark.parametrize(
    "line",
    [
        b"[" * DEEP,
        b'{"id": 1, "more": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"id": ' + b'{"id": ' * DEEP,
        b'{"id": NaN}',
        b'{"id": 1, "weight": Infinity}',
        b'{"id": 1, "weight": 1e999}',
        b'{"id": 1, "text": "\\ud800"}',
        b'{"id": 1, "text": "\xed\xa0\x80"}',
        b'{"id": 1, "text": "\xff"}',
        b'{"id": 1, "text": "\x00"}',
        b"\x00",
        b"\xff\xfe{\x00}",
        b'{"id": 1, "number": ' + b"9" * 5000 + b"}",
        b'{"id": 340282366920938463463374607431768211456}',
    ],
    ids=lambda line: repr(line[:40]),
)
def test_a_line_that_is_no_record_is_kept_in_a_side_output(tmp_path, line):
    def make(root):
        (root / "in").mkdir(exist_ok=True)
        (root / "in" / "a.jsonl").write_bytes(b'{"id": 0}\n' + line + b'\n{"id": 2}\n')
        return JsonLines(str(root / "in"))

    found = assert_carried_or_refused(tmp_path, make, {1: None}, {0, 2})
    assert [kept["line"] for kept in found.bad] == [2]


# CSV


def in_csv(item: Item) -> bytes:
    text = item.text.replace('"', '""').encode("utf-8", "surrogatepass")
    return b'%d,"%s",%d,%s' % (item.id, text, item.number, repr(item.weight).encode())


@given(hostile_items)
@example([Item(1, HUGE), Item(3, LONE), Item(5, "", 2**127), Item(7, "\x00", 0, math.nan)])
def test_csv(tmp_path_factory, items):
    rows, neighbours = among_neighbours(list(map(in_csv, items)), in_csv)

    def make(root):
        (root / "in").mkdir(exist_ok=True)
        (root / "in" / "a.csv").write_bytes(b"\n".join([b"id,text,number,weight", *rows]))
        return Csv(str(root / "in"))

    hostile = {item.id: item for item in items}
    assert_carried_or_refused(tmp_path_factory.mktemp("csv"), make, hostile, neighbours)


junk = st.binary(max_size=6).filter(lambda data: not set(data) & set(b'"\n') and data.strip())


@given(st.lists(st.tuples(st.integers(0, 20), junk), min_size=1, max_size=4))
def test_csv_with_junk_in_it(tmp_path_factory, changes):
    """Anything but quotes, which may open what only another quote closes."""
    row = in_csv(Item(1, "text", 5, 1.5))
    rows = [row[:at] + data + row[at:] for at, data in changes]
    all_rows, neighbours = among_neighbours(rows, in_csv)
    root = tmp_path_factory.mktemp("junk")
    (root / "in").mkdir()
    (root / "in" / "a.csv").write_bytes(b"\n".join([b"id,text,number,weight", *all_rows]))
    flow = cw.Flow("junk")
    flow.sink("out", flow.source("items", Item))
    job = make_job(flow, root, sources={"items": Csv(str(root / "in"))}, skip_bad_records=True)
    job = replace(job, sinks={**job.sinks, bad_records_sink("items"): folder(str(root / "bad"))})
    with pytest.MonkeyPatch.context() as patch:
        ToySpark(job, patch, seed=1).run_to_the_end([])
    out = [line["id"] for line in lines_in(root / "out" / "out")]
    assert len(out) + len(lines_in(root / "bad")) == len(all_rows)
    assert neighbours <= set(out)


# Parquet


def parquet_table(items: list[Item], texts: list[bytes | None]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([item.id for item in items], pa.int64()),
            "text": pa.array(texts, pa.binary()).view(pa.string()),
            "number": pa.array([item.number for item in items], pa.uint64()),
            "weight": pa.array([item.weight for item in items], pa.float64()),
        }
    )


raw_texts = st.none() | st.binary(max_size=6) | st.text(max_size=4).map(str.encode)


@given(
    st.lists(st.tuples(raw_texts, st.integers(0, 2**64 - 1), st.floats()), min_size=1, max_size=5)
)
@example([(HUGE.encode(), 0, math.nan), (b"\xed\xa0\x80", 0, 0.0), (b"\x00", 2**64 - 1, 0.0)])
def test_parquet(tmp_path_factory, rows):
    items: list[Item] = [Item(0, "good")]
    texts: list[bytes | None] = [b"good"]
    hostile: dict[int, Item | None] = {}
    for number, (text, size, weight) in enumerate(rows, 1):
        item = Item(2 * number - 1, "", size, weight)
        items += [item, Item(2 * number, "good", number)]
        texts += [text, b"good"]
        hostile[item.id] = carried_by_parquet(item, text)
    neighbours = {2 * number for number in range(len(rows) + 1)}

    def make(root):
        (root / "in").mkdir(exist_ok=True)
        pq.write_table(parquet_table(items, texts), root / "in" / "a.parquet")
        return Parquet(str(root / "in"))

    root = tmp_path_factory.mktemp("parquet")
    found = assert_carried_or_refused(root, make, hostile, neighbours)
    assert len(found.bad) == sum(item is None for item in hostile.values())


@given(st.lists(raw_texts, min_size=1, max_size=5))
@example([b"\xed\xa0\x80", b"good", None])
def test_parquet_whose_texts_are_numbered(tmp_path_factory, hostile):
    """Rows are counted by a text: a bad one takes no other with it, though a file has all once."""
    texts = [text for pair in zip(hostile, [b"good"] * len(hostile), strict=True) for text in pair]
    items = [Item(number, "", number) for number in range(len(texts))]
    root = tmp_path_factory.mktemp("numbered")
    (root / "in").mkdir()
    pq.write_table(parquet_table(items, texts), root / "in" / "a.parquet")
    flow = cw.Flow("numbered")
    counted = flow.source("items", Item).key_by("text").aggregate(n=cw.agg.count(), emit="epoch")
    flow.sink("out", counted)
    job = make_job(flow, root, sources={"items": Parquet(str(root / "in"))}, skip_bad_records=True)
    job = replace(job, sinks={**job.sinks, bad_records_sink("items"): folder(str(root / "bad"))})
    with pytest.MonkeyPatch.context() as patch:
        ToySpark(job, patch, seed=1).run_to_the_end([])
    good = Counter(text.decode() for text in texts if is_text(text))
    assert {line["text"]: line["n"] for line in lines_in(root / "out" / "out")} == good
    assert len(lines_in(root / "bad")) == len(texts) - good.total()


def is_text(data: bytes | None) -> bool:
    try:
        return data is not None and isinstance(data.decode(), str)
    except UnicodeDecodeError:
        return False


def carried_by_parquet(item: Item, text: bytes | None) -> Item | None:
    try:
        return (
            replace(item, text=text.decode()) if text is not None and item.number < 2**63 else None
        )
    except UnicodeDecodeError:
        return None


# Generators


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


anything = st.one_of(
    st.none(),
    st.integers(),
    st.binary(max_size=3),
    st.just(object()),
    st.just({"id": 1, "text": 5}),
    st.just({"id": "1"}),
    st.just("deep"),
)


@given(hostile_items, st.lists(anything, max_size=2))
@example([Item(1, HUGE), Item(3, LONE), Item(5, "", 2**127), Item(7, "", 0, math.nan)], [])
def test_a_generator(tmp_path_factory, items, things):
    rows, neighbours = among_neighbours([*items, *things], lambda item: item)
    hostile: dict[int, Item | None] = {item.id: item for item in items}
    hostile |= {-1 - number: None for number, _ in enumerate(things)}

    def make(_root):
        return Generated(Rows(rows), total=len(rows))

    assert_carried_or_refused(tmp_path_factory.mktemp("made"), make, hostile, neighbours)


class Rows:
    """A function that makes some of its rows only when it is asked: they cannot travel."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def __call__(self, number: int) -> Any:
        row = self._rows[number]
        return nested(DEEP) if row == "deep" else row
