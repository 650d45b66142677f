"""Folders of Parquet: what ordinary readers see of them, and what no column can hold."""

import datetime as dt
import enum
import math
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
import pandas as pd
import pyarrow.dataset as ds
import pytest
from support.connectors.sink_rows import bucket, claim, codes

from cutwater.endings import CHANGE, exit_code
from cutwater.errors import InputError
from cutwater.observers.delta import DeltaObserver
from cutwater.observers.folder import FolderObserver
from cutwater.spark.connectors.base import parquet_rows as parquet
from cutwater.spark.connectors.base.sink import BucketRows
from cutwater.spark.connectors.delta.sink import Delta
from cutwater.spark.connectors.files.sink import Folder


@dataclass(frozen=True)
class Mean:
    sensor: str
    value: float


@pytest.fixture
def out(tmp_path):
    return Folder(str(tmp_path / "out"), format="parquet")


def publish(out, epoch, *parts):
    """Publish an epoch, of one part for each list of records."""
    record, first, staged = type(parts[0][0]), 0, []
    for part in parts:
        staged.append(out.write(claim(), epoch, record, [bucket(record, part, first=first)]))
        first += len(part)
    out.publish(claim(), epoch, reversed(staged))


def test_readers_of_every_kind_see_whole_epochs_only(out):
    out.claim(claim())
    publish(out, 0, [Mean("a", 1.0), Mean("b", 2.0)], [Mean("c", 3.0)])
    out.write(claim(), 1, Mean, [bucket(Mean, [Mean("staged", 0.0)])])
    publish(out, 2, [Mean("d", 4.0)])
    rows = [Mean("a", 1.0), Mean("b", 2.0), Mean("c", 3.0), Mean("d", 4.0)]
    plain = [msgspec.to_builtins(row) for row in rows]
    assert FolderObserver(out.path).rows() == plain
    assert FolderObserver(out.path).epochs() == {0: plain[:3], 2: plain[3:]}
    found = ds.dataset(out.path, partitioning="hive").to_table().sort_by("value").to_pylist()
    assert found == [{**row, "epoch": e} for row, e in zip(plain, (0, 0, 0, 2), strict=True)]
    frame = pd.read_parquet(out.path).sort_values("value")
    assert frame["sensor"].tolist() == ["a", "b", "c", "d"]
    assert out.row_count(claim()) == 4


def test_publishing_again_changes_nothing(out):
    out.claim(claim())
    publish(out, 0, [Mean("first", 1.0)])
    publish(out, 0, [Mean("second", 1.0)])
    assert [row["sensor"] for row in FolderObserver(out.path).rows()] == ["first"]


def test_many_rows_are_written_in_several_groups(out, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 7)
    out.claim(claim())
    rows = [Mean("s", float(n)) for n in range(30)]
    publish(out, 0, rows)
    assert [row["value"] for row in FolderObserver(out.path).rows()] == [row.value for row in rows]


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    x: int
    tags: list[str]


@dataclass(frozen=True)
class Everything:
    whole: int
    real: float
    truth: bool
    text: str
    data: bytes
    moment: dt.datetime
    day: dt.date
    price: Decimal
    colour: Colour
    id: uuid.UUID
    inner: Inner
    counts: dict[str, int]
    maybe: int | None


EVERYTHING = Everything(
    whole=-(2**63),
    real=math.inf,
    truth=True,
    text="é\0 \U0001f600",
    data=b"\xff\0",
    moment=dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
    day=dt.date(1, 1, 1),
    price=Decimal("1.000000000000000001"),
    colour=Colour.RED,
    id=uuid.UUID(int=5),
    inner=Inner(1, ["a", "b"]),
    counts={"a": 1},
    maybe=None,
)


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_values_of_every_type_are_carried(tmp_path, kind):
    sink = made(kind, tmp_path)
    assert list(sink.problems("means", Everything)) == []
    (row,) = carried(sink, Everything, [EVERYTHING])
    expected = {name: getattr(EVERYTHING, name) for name in row}
    expected.update(colour="red", id=str(EVERYTHING.id), inner={"x": 1, "tags": ["a", "b"]})
    assert row == expected


def made(kind, tmp_path):
    path = str(tmp_path / "out")
    return Delta(path) if kind == "delta" else Folder(path, format="parquet")


def carried(sink, record, values):
    sink.prepare("means", record)
    sink.claim(claim())
    sink.publish(claim(), 0, [sink.write(claim(), 0, record, [bucket(record, values)])])
    observer = DeltaObserver if isinstance(sink, Delta) else FolderObserver
    return observer(sink.path).rows()


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Whole:
    number: int | None


@dataclass(frozen=True)
class Price:
    price: Decimal


@dataclass(frozen=True)
class Deep:
    nested: list[list[list[list[list[list[int]]]]]]


@pytest.mark.parametrize("kind", ["parquet", "delta"])
@pytest.mark.parametrize(
    "value",
    [Mean("s", math.nan), Text("x" * 10_000_000), Text(""), Deep([[[[[[1]]]]]]), Mean("s", -0.0)],
    ids=["nan", "10 MB", "empty", "deep", "negative zero"],
)
def test_hostile_values_that_are_carried(tmp_path, kind, value):
    (row,) = carried(made(kind, tmp_path), type(value), [value])
    assert repr(row) == repr(msgspec.to_builtins(value, builtin_types=(float,)))


@pytest.mark.parametrize("kind", ["parquet", "delta"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Text("a\ud800b"), r"cannot write 'a\\ud800b' to column 'text' of string"),
        (Whole(2**127), "cannot write 170141183460469231731687303715884105728 to column 'number'"),
        (Price(Decimal(10) ** 30), "cannot write Decimal.* to column 'price' of decimal128"),
        (Price(Decimal("1e-30")), "cannot write Decimal.* to column 'price' of decimal128"),
        (Price(Decimal("NaN")), "cannot write Decimal.* to column 'price' of decimal128"),
    ],
    ids=["surrogate", "2**127", "large decimal", "small decimal", "decimal nan"],
)
def test_hostile_values_that_are_a_sentence(tmp_path, kind, value, message):
    good = {Text: Text("fine"), Whole: Whole(1), Price: Price(Decimal(1))}[type(value)]
    with pytest.raises(InputError, match=message) as error:
        carried(made(kind, tmp_path), type(value), [good, value, good])
    assert codes(error.value.problems) == ["no-column-value"]
    assert exit_code(error.value) == CHANGE


def test_a_hostile_value_is_not_shown_whole(tmp_path):
    with pytest.raises(InputError) as error:
        carried(made("parquet", tmp_path), Text, [Text("x" * 1_000_000 + "\ud800")])
    assert len(str(error.value)) < 500


@dataclass(frozen=True)
class Tree:
    children: "list[Tree]"


@dataclass(frozen=True)
class AnyField:
    anything: Any


@dataclass(frozen=True)
class Epoch:
    epoch: int


@dataclass(frozen=True)
class Alike:
    value: int
    Value: int


@dataclass(frozen=True)
class Took:
    took: dt.timedelta


@pytest.mark.parametrize(
    ("record", "in_parquet", "in_delta"),
    [
        (Mean, [], []),
        (int, [], []),
        (Tree, ["no-column-type"], ["no-column-type"]),
        (AnyField, ["no-column-type"], ["no-column-type"]),
        (Epoch, ["column-named-epoch"], []),
        (Alike, ["columns-alike"], ["columns-alike"]),
        (Took, [], ["no-column-type"]),
    ],
)
def test_records_that_are_no_columns_are_refused_before_the_start(record, in_parquet, in_delta):
    assert codes(Folder("out", format="parquet").problems("means", record)) == in_parquet
    assert codes(Delta("out").problems("means", record)) == in_delta
    assert codes(Folder("out").problems("means", record)) == []


@pytest.mark.parametrize("url", ["s3://b/x", "abfss://c@a.dfs.core.windows.net/x", "gs://b/x"])
def test_object_stores_are_refused_in_a_sentence_that_names_delta(url):
    (problem,) = Folder(url).problems("means", Mean)
    assert problem.code == "object-store"
    assert url in problem.message
    assert "Delta" in problem.hint


def test_another_format_is_refused(out):
    assert codes(Folder("out", format="csv").problems("means", Mean)) == ["unknown-choice"]
    out.claim(claim())
    assert codes(Folder(out.path).check("means", "q", 0)) == ["another-format"]
    assert out.check("means", "q", 0) == []


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_what_is_created_is_its_owners_alone(tmp_path, format):
    out = Folder(str(tmp_path / "far" / "out"), format=format)
    out.claim(claim())
    rows = bucket(Mean, [Mean("a", 1.0)])
    lines = BucketRows(1, rows.orders, [b"{}\n"])
    part = out.write(claim(), 0, Mean, [rows if format == "parquet" else lines])
    out.publish(claim(), 0, [part])
    made = list(tmp_path.rglob("*"))
    assert any(path.suffix == f".{format}" for path in made)
    assert [path for path in made if path.stat().st_mode & 0o077] == []
