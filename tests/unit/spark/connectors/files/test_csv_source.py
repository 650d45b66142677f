"""Folders of CSV: what each row becomes, and the message for a bad one."""

import csv
import datetime as dt
import enum
import io
import json
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutwater as cw
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.source import BAD
from cutwater.spark.connectors.files import csv_source as csv_files
from cutwater.spark.connectors.files.csv_source import Csv
from cutwater.spark.exchange.columns import Records
from cutwater.spark.microbatch.source_reader import shares


@dataclass(frozen=True)
class Item:
    name: str
    size: int
    note: str | None = None


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "csv"
    made.mkdir()
    return made


def put(folder, text, name="a.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def items(copied, tp=Item):
    return [msgspec.json.decode(line, type=tp) for line in copied.lines]


@pytest.mark.parametrize(
    "text",
    [
        "name,size\na,1\nb,2\n",
        "name,size\na,1\nb,2",
        "name,size\r\na,1\r\nb,2\r\n",
        "size,name\n1,a\n2,b\n",
        '"name","size"\n"a","1"\n"b","2"\n',
        "\ufeffname,size\na,1\nb,2\n",
        "name,size\n\na,1\n\r\n\nb,2\n\n",
    ],
    ids=["plain", "no last end", "CRLF", "other order", "quoted", "BOM", "blank lines"],
)
def test_rows_are_read_in_any_dress(folder, copy, text):
    put(folder, text)
    assert items(copy(Csv(str(folder)), Item)) == [Item("a", 1), Item("b", 2)]


def test_quotes_hold_line_ends_delimiters_and_quotes(folder, copy):
    put(folder, 'name,size\n"a\nb\r\n,""c""",1\nd,2\n')
    assert items(copy(Csv(str(folder)), Item)) == [Item('a\nb\r\n,"c"', 1), Item("d", 2)]


def test_an_empty_place_is_none_where_it_may_be(folder, copy):
    put(folder, 'name,size,note\n,1,\n"",2,""\nx,3,y\n')
    wanted = [Item("", 1, None), Item("", 2, None), Item("x", 3, "y")]
    assert items(copy(Csv(str(folder)), Item)) == wanted


def test_another_delimiter(folder, copy):
    put(folder, "name;size\na,b;1\n")
    assert items(copy(Csv(str(folder), delimiter=";"), Item)) == [Item("a,b", 1)]


def test_a_field_that_is_left_out_has_its_default(folder, copy):
    put(folder, "name,size\na,1\n", "a.csv")
    put(folder, "note,name,size\nn,b,2\n", "b.csv")
    assert items(copy(Csv(str(folder)), Item)) == [Item("a", 1), Item("b", 2, "n")]
    (line, _) = copy(Csv(str(folder)), Item).lines or (None, None)
    assert json.loads(line) == {"name": "a", "size": 1, "note": None}


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Wide:
    whole: int
    real: float
    yes: bool
    exact: Decimal
    at: dt.datetime
    day: dt.date
    span: dt.timedelta
    id: uuid.UUID
    colour: Colour
    one: Literal["x", "y"]
    data: bytes
    maybe: int | None


def test_every_kind_of_value_is_made_of_text(folder, copy):
    values = {
        "whole": "-12",
        "real": "1.5e3",
        "yes": "true",
        "exact": "1.10",
        "at": "2024-01-02T03:04:05Z",
        "day": "2024-01-02",
        "span": "PT90S",
        "id": "00000000-0000-0000-0000-00000000000a",
        "colour": "red",
        "one": "y",
        "data": "aGk=",
        "maybe": "",
    }
    put(folder, f"{','.join(values)}\n{','.join(values.values())}\n")
    assert items(copy(Csv(str(folder)), Wide), Wide) == [
        Wide(
            -12,
            1500.0,
            True,
            Decimal("1.10"),
            dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
            dt.date(2024, 1, 2),
            dt.timedelta(seconds=90),
            uuid.UUID(int=10),
            Colour.RED,
            "y",
            b"hi",
            None,
        )
    ]


BAD_ROWS = {
    "x,many": "Expected `int`, got `str` - at `$.size`",
    "x": "it has 1 values, and the file has 2 columns",
    "x,1,2": "it has 3 values, and the file has 2 columns",
    '"x"y,1': "',' expected after '\"'",
    "x\ry,1": "new-line character seen in unquoted field",
    "x,": "Expected `int`, got `str` - at `$.size`",
}


@pytest.mark.parametrize(("row", "error"), BAD_ROWS.items())
def test_a_bad_row_is_named_by_file_and_line_and_its_neighbours_are_read(folder, copy, row, error):
    path = put(folder, f'name,size\n"a\nb",1\n{row}\nc,3\n')
    message = copy.refused(Csv(str(folder)), Item)
    assert message.startswith(
        f"[bad-record] {path}:4 is not a record of source 'items': {error}; it is "
    )
    copied = copy(Csv(str(folder)), Item, skip_bad_records=True)
    assert items(copied) == [Item("a\nb", 1), Item("c", 3)]
    (kept,) = map(json.loads, copied.bad)
    assert kept == {"file": str(path), "line": 4, "error": error, "text": row}


def test_what_is_not_utf8_is_a_bad_row(folder, copy):
    put(folder, b"name,size\na,1\n\xff,2\n\xc3\xa9,3\n")
    copied = copy(Csv(str(folder)), Item, skip_bad_records=True)
    assert items(copied) == [Item("a", 1), Item("é", 3)]
    (kept,) = map(json.loads, copied.bad)
    assert (kept["line"], kept["error"]) == (3, "it is not UTF-8")


def test_an_open_quote_is_one_bad_row_of_which_nothing_is_lost(folder, copy):
    put(folder, 'name,size\na,1\n"b,2\nc,3\nd,4\n')
    copied = copy(Csv(str(folder)), Item, skip_bad_records=True)
    assert items(copied) == [Item("a", 1)]
    (kept,) = map(json.loads, copied.bad)
    assert (kept["line"], kept["error"]) == (3, "unexpected end of data")
    assert kept["text"] == '"b,2\nc,3\nd,4'


@pytest.mark.parametrize(
    ("header", "code", "words"),
    [
        ("name", "missing-column", "but the record needs a column 'size'"),
        ("name,size,colour", "unknown-column", "but the record has no field 'colour'; it has: "),
        ("name,size,size", "column-twice", "'size' twice"),
        ("", "no-header", "names no columns"),
        ('"name', "no-header", "names no columns"),
    ],
)
def test_a_header_that_does_not_fit_is_refused_and_nothing_is_planned(
    folder, copy, tmp_path, header, code, words
):
    path = put(folder, f"{header}\n")
    message = copy.refused(Csv(str(folder)), Item, skip_bad_records=True)
    assert message.startswith(f"[{code}] the first line of {path} names ")
    assert words in message
    assert not list((tmp_path / "checkpoint" / "sources" / "items").rglob("*.json"))
    put(folder, "name,size\na,1\n")
    assert items(copy(Csv(str(folder)), Item)) == [Item("a", 1)]


@pytest.mark.parametrize("text", ["", "name,size\n", "name,size"])
def test_a_file_without_rows_is_no_input(folder, copy, text):
    put(folder, text)
    assert copy(Csv(str(folder)), Item).epochs == []
    assert not Csv(str(folder)).planner(Item, lambda: 0.0).has_input()


@dataclass(frozen=True)
class Nested:
    inner: list[int] = field(default_factory=list)
    either: int | str = 0


def problems(source, tp):
    flow = cw.Flow("csv")
    flow.source("items", tp)
    (step,) = (step for step in flow.steps if isinstance(step, Source))
    return [problem.code for problem in source.problems("items", step)]


def test_settings_that_cannot_work_are_refused_before(folder):
    assert problems(Csv(str(folder)), Item) == []
    assert problems(Csv(str(folder)), Wide) == []
    assert problems(Csv(str(folder)), Nested) == ["no-column-type", "no-column-type"]
    assert problems(Csv(str(folder)), str) == ["no-columns"]
    assert problems(Csv(str(folder), ";;"), Item) == ["not-a-delimiter"]
    assert problems(Csv(str(folder), '"'), Item) == ["not-a-delimiter"]
    assert problems(Csv(str(folder / "no")), Item) == ["missing-folder"]
    assert problems(Csv(str(folder), max_bytes_per_epoch=0), Item) == ["no-progress"]


texts = st.text(st.sampled_from('ab,"\n\ré'), max_size=6)
wild = st.text(st.sampled_from('a,"\n\r'), max_size=30)


def all_rows(source, chunks):
    reader = source.reader(Item)
    return [
        (chunk.number, position, raw)
        for chunk in chunks
        for run in reader.batches(chunk)
        for position, raw in zip(run.positions, run.raws, strict=True)
    ]


@given(st.lists(wild, max_size=3), st.integers(1, 12), st.integers(1, 4))
def test_rows_do_not_depend_on_how_files_are_cut_whatever_is_in_them(
    tmp_path_factory, files, max_bytes, parts
):
    """Neither over epochs nor over tasks; also where quotes are anywhere."""
    folder = tmp_path_factory.mktemp("csv")
    for number, text in enumerate(files):
        put(folder, f"name,size\n{text}", f"{number}.csv")
    cut, whole = Csv(str(folder), max_bytes_per_epoch=max_bytes), Csv(str(folder))
    planners = [source.planner(Item, lambda: 0.0) for source in (cut, whole)]
    wanted = all_rows(whole, planners[1].poll())
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Csv, "min_task_weight", 1)
        while chunks := planners[0].poll():
            for chunk in chunks:
                planners[0].advance(chunk)
            found += [row for share in shares(cut, chunks, parts) for row in all_rows(cut, share)]
    assert found == wanted


@given(st.lists(st.tuples(texts, st.integers(), st.none() | texts.filter(bool)), min_size=1))
def test_what_python_writes_is_read(tmp_path_factory, rows):
    root = tmp_path_factory.mktemp("csv")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([("name", "size", "note"), *rows])
    put(root, text.getvalue())
    source = Csv(str(root))
    reader = source.reader(Item)
    (chunk,) = source.planner(Item, lambda: 0.0).poll()
    values = [value for run in reader.batches(chunk) for value in reader.decode(run)]
    assert values == [Item(*row) for row in rows]


def test_a_long_file_is_read_in_runs_and_by_many(folder, copy, monkeypatch):
    monkeypatch.setattr("cutwater.spark.connectors.files.text.RUN_BYTES", 1000)
    rows = [Item(f"n{number}\n", number, "x" * 50) for number in range(3000)]
    put(folder, "name,size,note\n" + "".join(f'"{r.name}",{r.size},{r.note}\n' for r in rows))
    copied = copy(Csv(str(folder), max_bytes_per_epoch=100_000), Item, parallelism=3)
    assert len(copied.epochs) == 2
    assert items(copied) == rows


def test_a_csv_source_says_that_it_can_be_replayed():
    replay = Csv("in").replay()
    assert replay.is_replayable
    assert "unchanged" in replay.provided


def test_settings_are_plain_data():
    source = Csv("in", ";", 100, 2.5)
    assert Csv(**json.loads(json.dumps(vars(source)))) == source
    assert source.absolute() == Csv(str(Path("in").absolute()), ";", 100, 2.5)


@dataclass(frozen=True)
class Plain:
    name: str
    size: int
    weight: float


whole = ["0", "-0", "7", "-12", "+5", "007", " 7", "7 ", "0x1F", "1_000", str(2**63 - 1)]
others = [str(2**63), "1e3", "1.5", "-2.25e-3", ".5", "5.", "1e400", "nan", "inf", "", "x"]
numbers = st.sampled_from([*whole, *others])
plain_lines = st.lists(
    st.tuples(st.text("ab ;x\u00e9\x00'\t", max_size=4), numbers, numbers).map(",".join)
    | st.text("a1,\u00e9 .", max_size=8),
    max_size=8,
)


def read(tp, text, tmp_path):
    """The values of all good rows, and the messages for all bad ones, by position."""
    path = tmp_path / "a.csv"
    path.write_text("name,size,weight\n" + text, newline="")
    source = Csv(str(tmp_path))
    chunk = source.whole_file(str(path), path.stat(), 0, tp)
    reader = source.reader(tp)
    found = []
    for run in reader.batches(chunk) if chunk.start < chunk.end else ():
        try:
            good = list(reader.decode(run))
        except BAD:
            good = None
        for place, raw in enumerate(run.raws):
            try:
                value = reader.decode_one(raw)
                assert good is None or good[place] == value
                assert good is None or [*map(type, vars(good[place]).values())] == [str, int, float]
            except BAD as error:
                assert good is None
                value = str(error)
            found.append((run.positions[place], value, reader.preview(raw)))
    return found


@given(plain_lines, st.booleans())
def test_plain_rows_are_what_rows_are(tmp_path_factory, lines, has_end):
    """Differential: as columns, and row by row."""
    text = "\n".join(lines) + "\n" * has_end
    tmp_path = tmp_path_factory.mktemp("plain")
    in_columns = read(Plain, text, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "plain_rows", lambda *_: None)
        one_by_one = read(Plain, text, tmp_path)
    assert repr(in_columns) == repr(one_by_one)


def test_plain_rows_stay_columns(tmp_path):
    path = put(tmp_path, "weight,name,size\n0.5,a,1\n2,b,-2\n")
    source = Csv(str(tmp_path))
    reader = source.reader(Plain)
    (run,) = reader.batches(source.whole_file(str(path), path.stat(), 0, Plain))
    records = reader.decode(run)
    assert isinstance(records, Records)
    assert list(records) == [Plain("a", 1, 0.5), Plain("b", -2, 2.0)]


@pytest.mark.parametrize("tp", [Item, Plain])
def test_a_row_that_is_too_long_is_bad_and_its_neighbours_are_read(tmp_path, tp):
    columns = list(tp.__annotations__)
    rows = [["a", "1", "2"], ["b" * 50, "1", "2"], ["c", "1", "2"]]
    (tmp_path / "a.csv").write_text("\n".join(map(",".join, [columns, *rows])) + "\n")
    source = Csv(str(tmp_path), max_record_bytes=20)
    [chunk] = source.planner(tp, lambda: 0).poll()
    reader = source.reader(tp)
    [run] = reader.batches(chunk)
    assert [reader.decode_one(run.raws[n]).name for n in (0, 2)] == ["a", "c"]
    with pytest.raises(BAD, match="it has 54 bytes, and a record has at most 20"):
        reader.decode_one(run.raws[1])
    with pytest.raises(BAD):
        reader.decode(run)


def test_a_limit_of_rows_does_not_cut_a_record(tmp_path):
    (tmp_path / "a.csv").write_text('name,size\n"a\nb\nc",1\nd,2\ne,3\n')
    source = Csv(str(tmp_path), max_rows_per_epoch=1)
    planner, reader, found = source.planner(Item, lambda: 0), source.reader(Item), []
    while chunks := planner.poll():
        for chunk in chunks:
            planner.advance(chunk)
            found.append([v.name for run in reader.batches(chunk) for v in reader.decode(run)])
    assert found == [["a\nb\nc"], ["d"], ["e"]]
