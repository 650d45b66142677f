"""Records that are too long: they end where Python's reader lets them end, and are not held."""

import io
import tracemalloc
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cutwater.spark.connectors.base.source import BAD
from cutwater.spark.connectors.files import csv_records, csv_source, lines
from cutwater.spark.connectors.files import text as text_files
from cutwater.spark.connectors.files.csv_records import first_records
from cutwater.spark.connectors.files.csv_source import Csv

PARTS = st.tuples(
    st.text('ab;"\n\r', min_size=1, max_size=4), st.sampled_from([1, 2, 119, 130, 191])
)
TEXTS = st.lists(PARTS, max_size=6).map(lambda parts: "".join(p * n for p, n in parts).encode())


def ends_of(text, longest):
    """Where each record ends."""
    found, taken = [], 0
    file = io.BytesIO(text)
    while taken < len(text):
        file.seek(taken)
        taken += first_records(file, 1, ";", longest)[0]
        found.append(taken)
    return found


@given(TEXTS)
@example(b'"' * 200 + b'\na;"b"\n')
@example(b'"a";' * 151 + b'"\n"\n')
def test_ends_of_short_lines_equal_ends_of_lines(text):
    assert ends_of(text, longest=-1) == ends_of(text, longest=1 << 30)


@dataclass(frozen=True)
class Item:
    name: str
    size: str


BODY = {
    "an open quote": b'"' + (b"abc," * 100 + b"def\n") * 5_000,
    "a long line": b"abc," * 500_000 + b"\n",
    "many quoted values": b'"abc",' * 200_000 + b"\n",
}


@pytest.mark.parametrize("kind", BODY)
def test_a_record_of_two_megabytes_is_refused_in_less_than_one(tmp_path, monkeypatch, kind):
    for module, name in (
        (csv_source, "_AT_ONCE"),
        (csv_records, "_PIECE"),
        (csv_records, "RUN_BYTES"),
        (text_files, "RUN_BYTES"),
        (lines, "_BLOCK"),
    ):
        monkeypatch.setattr(module, name, 10_000)
    text = b"name,size\na,1\n" + BODY[kind] + (b'"x\n' if kind == "an open quote" else b"")
    (tmp_path / "a.csv").write_bytes(text + (b"" if kind == "an open quote" else b"b,2\n"))
    source = Csv(str(tmp_path), max_record_bytes=10_000)
    reader = source.reader(Item)
    tracemalloc.start()
    try:
        [chunk] = source.planner(Item, lambda: 0).poll()
        runs = list(reader.batches(chunk))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    raws = [raw for run in runs for raw in run.raws]
    assert reader.decode_one(raws[0]) == Item("a", "1")
    with pytest.raises(BAD, match=r"it has \d{7} bytes, and a record has at most 10000"):
        reader.decode_one(raws[1])
    assert [reader.decode_one(raw) for raw in raws[2:]] == (
        [] if kind == "an open quote" else [Item("b", "2")]
    )


def test_a_header_that_never_ends_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_source, "MAX_RECORD_BYTES", 1000)
    (tmp_path / "a.csv").write_bytes(b'"name,size\n' + b"a,1\n" * 1000)
    with pytest.raises(Exception, match="names no columns"):
        Csv(str(tmp_path)).planner(Item, lambda: 0).poll()
