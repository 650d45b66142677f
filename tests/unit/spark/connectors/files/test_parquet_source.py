"""Folders of Parquet: rows by their number, columns as they are, and what is refused."""

import datetime as dt
import json
import math
from dataclasses import dataclass
from decimal import Decimal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutwater as cw
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.source import BadRecord
from cutwater.spark.connectors.files import parquet_source as parquet_files
from cutwater.spark.connectors.files.parquet_source import Parquet
from cutwater.spark.exchange.columns import Records
from cutwater.spark.microbatch.source_reader import shares


@dataclass(frozen=True)
class Item:
    name: str
    size: int
    weight: float = 0.5
    note: str | None = None


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "parquet"
    made.mkdir()
    return made


def put(folder, columns, name="a.parquet", **options):
    path = folder / name
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, path, **options)
    return path


def items(copied, tp=Item):
    return [msgspec.json.decode(line, type=tp) for line in copied.lines]


def test_rows_are_records_whatever_the_groups_and_the_order_of_columns(folder, copy):
    put(folder, {"size": [1, 2, 3], "more": [0, 0, 0], "name": list("abc")}, row_group_size=2)
    put(folder, {"name": ["d"], "size": [4], "weight": [1.0], "note": ["n"]}, "b.parquet")
    assert items(copy(Parquet(str(folder)), Item)) == [
        Item("a", 1),
        Item("b", 2),
        Item("c", 3),
        Item("d", 4, 1.0, "n"),
    ]


def test_columns_do_not_become_objects_on_the_way(folder):
    put(folder, {"name": list("abc"), "size": [1, 2, 3], "weight": [1.0, 2.0, 3.0]})
    source = Parquet(str(folder))
    (chunk,) = source.planner(Item, lambda: 0.0).poll()
    reader = source.reader(Item)
    (run,) = reader.batches(chunk)
    records = reader.decode(run)
    assert isinstance(records, Records)
    assert records.columns["size"].dtype == np.int64
    assert records._values is None


@given(
    st.lists(st.integers(0, 9), max_size=4),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([[], ["name"], ["size"]]),
)
def test_every_row_is_read_once_however_files_are_cut(
    tmp_path_factory, sizes, group, per_epoch, parts, run_rows, numbered
):
    folder = tmp_path_factory.mktemp("parquet")
    for number, size in enumerate(sizes):
        rows = {"name": [f"{number}-{row // 2}" for row in range(size)], "size": range(size)}
        schema = pa.schema({"name": pa.string(), "size": pa.int64()})
        table = pa.table(rows, schema=schema)
        put(folder, table, f"{number}.parquet", row_group_size=group)
    source = Parquet(str(folder), max_rows_per_epoch=per_epoch)
    planner, reader, found = source.planner(Item, lambda: 0.0), source.reader(Item), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Parquet, "min_task_weight", 1)
        patch.setattr(parquet_files, "PARQUET_BATCH_ROWS", run_rows)
        patch.setattr(parquet_files, "NUMBERED_ROWS", run_rows)
        reader.numbered = numbered
        while chunks := planner.poll():
            assert sum(map(reader.count, chunks)) <= per_epoch
            for chunk in chunks:
                planner.advance(chunk)
            for share in shares(source, chunks, parts, reader):
                for run in (run for chunk in share for run in reader.batches(chunk)):
                    records = reader.decode(run)
                    names = [item.name for item in records]
                    found += zip(names, run.positions, strict=True)
                    for field in numbered:
                        one = records.numberings[field]
                        assert [one.values[n] for n in one.of] == list(records.fields([field]))
    assert not planner.has_input()
    assert found == [
        (f"{number}-{row // 2}", row) for number, size in enumerate(sizes) for row in range(size)
    ]


@dataclass(frozen=True)
class Visit:
    size: int
    user: str = "nobody"


def test_a_numbered_field_may_be_left_out_by_a_file(folder):
    put(folder, {"size": [1, 2]})
    put(folder, {"size": [3], "user": ["me"]}, "b.parquet")
    source = Parquet(str(folder))
    reader = source.reader(Visit)
    reader.numbered = ["user"]
    chunks = source.planner(Visit, lambda: 0.0).poll()
    runs = [run for chunk in chunks for run in reader.batches(chunk)]
    found = [record for run in runs for record in reader.decode(run)]
    assert found == [Visit(1), Visit(2), Visit(3, "me")]


def test_an_epoch_has_a_limit_in_bytes_too(folder):
    put(folder, {"name": ["x" * 1000 + str(n) for n in range(100)], "size": range(100)})
    planner = Parquet(str(folder), max_bytes_per_epoch=10_000).planner(Item, lambda: 0.0)
    (chunk,) = planner.poll()
    assert 5 <= chunk.end <= 15


def test_a_file_that_changes_is_refused(folder, copy):
    path = put(folder, {"name": ["a", "b"], "size": [1, 2]})
    reader = copy.reader(Parquet(str(folder), max_rows_per_epoch=1), Item)
    assert reader.latestOffset({"entry": 0}, None) == {"entry": 1}
    put(folder, {"name": ["a", "b", "c"], "size": [1, 2, 3]})
    with pytest.raises(RuntimeError):
        reader.latestOffset({"entry": 1}, None)
    assert path.exists()


@dataclass(frozen=True)
class Wide:
    at: dt.datetime
    naive: dt.datetime
    day: dt.date
    exact: Decimal
    data: bytes
    many: list[int]
    word: str
    big: int


def test_columns_of_many_types(folder, copy):
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
    put(
        folder,
        {
            "at": pa.array([moment], pa.timestamp("ns", tz="UTC")),
            "naive": pa.array([moment.replace(tzinfo=None)], pa.timestamp("ms")),
            "day": pa.array([moment.date()], pa.date32()),
            "exact": pa.array([Decimal("1.10")], pa.decimal128(10, 2)),
            "data": pa.array([b"\x00\xff"], pa.binary()),
            "many": pa.array([[1, 2]], pa.list_(pa.int32())),
            "word": pa.array(["w"]).dictionary_encode(),
            "big": pa.array([7], pa.uint64()),
        },
    )
    naive = moment.replace(tzinfo=None, microsecond=0)
    wanted = Wide(moment, naive, moment.date(), Decimal("1.10"), b"\x00\xff", [1, 2], "w", 7)
    assert items(copy(Parquet(str(folder)), Wide), Wide) == [wanted]


@dataclass(frozen=True)
class Careful:
    size: int

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("size is less than 0")


def test_a_record_that_looks_at_itself_does_so_here_too(folder, copy):
    put(folder, {"size": [1, -1, 2]})
    copied = copy(Parquet(str(folder)), Careful, skip_bad_records=True)
    assert items(copied, Careful) == [Careful(1), Careful(2)]
    (kept,) = map(json.loads, copied.bad)
    assert "size is less than 0" in kept["error"]


def test_bad_rows_are_named_and_their_neighbours_are_read(folder, copy):
    wrong = pa.array([b"a", b"\xff", b"c", b"d"]).view(pa.string())
    sizes = pa.array([1, 2, None, 2**63], pa.uint64())
    path = put(folder, {"name": wrong, "size": sizes})
    message = copy.refused(Parquet(str(folder)), Item)
    assert message.startswith(f"[bad-record] row 2 of {path} is not a record of source 'items': ")
    copied = copy(Parquet(str(folder)), Item, skip_bad_records=True)
    assert items(copied) == [Item("a", 1)]
    kept = [json.loads(line) for line in copied.bad]
    assert [(k["file"], k["row"]) for k in kept] == [(str(path), row) for row in (2, 3, 4)]
    assert "Invalid UTF8 sequence" in kept[0]["error"]
    assert kept[1]["error"].startswith("the file has a row without 'size'")
    assert "9223372036854775808" in kept[2]["text"]


def test_nanoseconds_that_would_be_lost_make_a_bad_row(folder, copy):
    @dataclass(frozen=True)
    class Timed:
        at: dt.datetime

    put(folder, {"at": pa.array([1000, 1001, 2000], pa.timestamp("ns", tz="UTC"))})
    copied = copy(Parquet(str(folder)), Timed, skip_bad_records=True)
    assert len(copied.lines) == 2
    assert "would lose data" in json.loads(copied.bad[0])["error"]


def test_what_is_not_a_number_is_carried(folder):
    put(folder, {"name": list("ab"), "size": [1, 2], "weight": [math.nan, math.inf]})
    source = Parquet(str(folder))
    (chunk,) = source.planner(Item, lambda: 0.0).poll()
    reader = source.reader(Item)
    (run,) = reader.batches(chunk)
    first, second = reader.decode(run)
    assert math.isnan(first.weight)
    assert second.weight == math.inf


@pytest.mark.parametrize(
    ("columns", "code", "words"),
    [
        ({"name": ["a"]}, "missing-column", "has no column 'size', which the record needs"),
        ({"name": ["a"], "size": ["1"]}, "column-of-another-type", "is string; the record"),
        ({"name": ["a"], "size": [None]}, "column-of-another-type", "is null; the record"),
        (
            {"name": ["a"], "size": pa.array([2**127 // 10], pa.decimal128(38, 0))},
            "column-of-another-type",
            "is decimal128(38, 0); the record declares it as int",
        ),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_and_nothing_is_planned(
    folder, copy, tmp_path, columns, code, words
):
    put(folder, columns)
    message = copy.refused(Parquet(str(folder)), Item, skip_bad_records=True)
    assert message.startswith(f"[{code}] ")
    assert words in message
    assert not list((tmp_path / "checkpoint" / "sources" / "items").rglob("*.json"))


@pytest.mark.parametrize("damage", ["no parquet", "cut off", "empty", "garbage inside"])
def test_a_damaged_file_is_a_sentence(folder, copy, damage):
    path = put(folder, {"name": ["abc" * 50] * 100, "size": range(100)}, use_dictionary=False)
    data = bytearray(path.read_bytes())
    match damage:
        case "no parquet":
            data = b"name,size\n"
        case "cut off":
            data = data[: len(data) // 2]
        case "empty":
            data = b""
        case "garbage inside":
            data[4:200] = b"\xff" * 196
    path.write_bytes(data)
    message = copy.refused(Parquet(str(folder)), Item, skip_bad_records=True)
    assert message.startswith(f"[damaged-parquet] {path} cannot be read as Parquet: ")


def test_a_file_without_rows_is_no_input(folder, copy):
    schema = pa.schema({"name": pa.string(), "size": pa.int64()})
    put(folder, schema.empty_table())
    assert copy(Parquet(str(folder)), Item).epochs == []


def test_settings_that_cannot_work_are_refused_before(folder):
    flow = cw.Flow("parquet")
    flow.source("items", Item)
    (step,) = (step for step in flow.steps if isinstance(step, Source))
    for source, codes in (
        (Parquet(str(folder)), []),
        (Parquet(str(folder), max_rows_per_epoch=0), ["no-progress"]),
        (Parquet(str(folder / "no"), max_bytes_per_epoch=0), ["missing-folder", "no-progress"]),
    ):
        assert [problem.code for problem in source.problems("items", step)] == codes


def test_a_file_that_inflates_is_planned_and_read_by_what_it_decodes_to(tmp_path):
    """A text that comes often is stored once; 65,536 times 4,000 bytes are 250 MiB."""
    text = "x" * 4000
    column = pa.array([text] * 65_536)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"value": column}), path, row_group_size=32_768)
    assert path.stat().st_size < 1 << 20
    source = Parquet(str(tmp_path))
    [chunk] = source.planner(str, lambda: 0).poll()
    limit = source.max_bytes_per_epoch
    assert 0.5 * limit < (chunk.end - chunk.start) * len(text) <= 1.1 * limit
    sizes = [run.raws.batch.nbytes for run in source.reader(str).batches(chunk)]
    assert max(sizes) < 48 << 20
    assert sum(sizes) >= (chunk.end - chunk.start) * len(text)


@dataclass(frozen=True)
class Notes:
    key: str
    notes: list[str]


def test_a_value_that_is_too_long_is_bad_and_its_neighbours_are_read(tmp_path):
    pq.write_table(pa.table({"value": ["a", "b" * 50, "c"]}), tmp_path / "a.parquet")
    source = Parquet(str(tmp_path), max_record_bytes=20)
    [chunk] = source.planner(str, lambda: 0).poll()
    reader = source.reader(str)
    [run] = reader.batches(chunk)
    assert [reader.decode_one(run.raws[n]) for n in (0, 2)] == ["a", "c"]
    for read in (lambda: reader.decode(run), lambda: reader.decode_one(run.raws[1])):
        with pytest.raises(BadRecord, match="it has 50 bytes, and a record has at most 20"):
            read()


@pytest.mark.parametrize("columns", [{}, {"key": ["k"] * 3}])
def test_a_row_is_too_long_by_all_its_values_together(tmp_path, columns):
    """No value is longer than a record may be; of a list and of numbered texts the sum counts."""
    notes = [["x" * 9] * n for n in (1, 3, 2)]
    table = pa.table({"key": ["k"] * 3, "notes": pa.array(notes, pa.list_(pa.string())), **columns})
    pq.write_table(table, tmp_path / "a.parquet")
    source = Parquet(str(tmp_path), max_record_bytes=20)
    [chunk] = source.planner(Notes, lambda: 0).poll()
    reader = source.reader(Notes)
    reader.numbered = ("key",) if columns else ()
    [run] = reader.batches(chunk)
    assert [len(reader.decode_one(run.raws[n]).notes) for n in (0, 2)] == [1, 2]
    with pytest.raises(BadRecord, match="it has 28 bytes, and a record has at most 20"):
        reader.decode_one(run.raws[1])
