"""Lines are read a block at a time, and what is too long for a record is never held whole."""

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.spark.connectors.base.long_records import LongRecord
from cutwater.spark.connectors.base.source import BadRecord, Chunk
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.lines import (
    MAX_FILES_PER_EPOCH,
    end_of_line,
    line_starts,
    lines_of,
    until_line,
)

TEXTS = st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")), max_size=12)


def chunk_of(path, start=0, end=None):
    found = path.stat()
    about = {"path": str(path), "size": found.st_size, "modified_ns": found.st_mtime_ns}
    return Chunk(0, start, found.st_size if end is None else end, about)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")

    def write(data):
        path = folder / "a"
        path.write_bytes(data)
        return path

    return write


@given(TEXTS, st.booleans(), st.integers(1, 20), st.integers(0, 15))
def test_blocks_of_any_size_hold_the_lines_that_are_there(file, texts, is_ended, block, longest):
    path = file(b"\n".join(texts) + b"\n" * is_ended)
    found, places = [], []
    for lines, begins in lines_of(chunk_of(path), longest, block):
        assert len(lines) == 1 or not any(isinstance(line, LongRecord) for line in lines)
        found += [line.size if isinstance(line, LongRecord) else line for line in lines]
        places += begins
    expected = path.read_bytes().split(b"\n")
    wanted = [len(line) if len(line) > longest else line for line in expected]
    begins = [sum(len(line) + 1 for line in expected[:n]) for n in range(len(expected))]
    pairs = [(line, place) for line, place in zip(found, places, strict=True) if line != b""]
    assert pairs == [(w, b) for w, b in zip(wanted, begins, strict=True) if w != b""]


@given(TEXTS, st.integers(0, 40), st.integers(1, 15))
def test_where_lines_end(file, texts, place, lines):
    data = b"\n".join(texts)
    path, end = str(file(data)), len(data)
    place = min(place, end)
    found = data.find(b"\n", place)
    assert end_of_line(path, place, end) == (found + 1 if 0 <= found < end else end)
    size, count = until_line(path, 0, end, lines)
    assert data[:size].count(b"\n") <= lines
    assert size == end or (count == lines and data[:size].endswith(b"\n"))
    starts = [0, *(n + 1 for n, byte in enumerate(data) if byte == 10)]
    assert list(line_starts(path, end)) == starts


def test_a_record_that_is_too_long_is_bad_whatever_it_begins_with(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"1\n" + b"2" * 50 + b"\n3\n")
    reader = JsonLines(str(tmp_path), max_record_bytes=10).reader(int)
    runs = list(reader.batches(chunk_of(tmp_path / "a.jsonl")))
    assert [run.positions for run in runs] == [[0], [2], [53]]
    assert [reader.decode(run) for run in (runs[0], runs[2])] == [[1], [3]]
    message = r"it has 50 bytes, and a record has at most 10 \(max_record_bytes\)"
    for read in (reader.decode, lambda run: reader.decode_one(run.raws[0])):
        with pytest.raises(BadRecord, match=message):
            read(runs[1])
    assert reader.count(chunk_of(tmp_path / "a.jsonl")) == 3


def test_a_long_line_is_not_held_in_memory(tmp_path):
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.truncate(256 << 20)  # zeros, which take no room on the disk
    source = JsonLines(str(tmp_path))
    chunk = chunk_of(path)
    tracemalloc.start()
    try:
        [run] = source.reader(int).batches(chunk)
        assert source.cut(chunk, 1 << 20) == chunk.end
        assert source.location(chunk, 0) == f"{path}:1"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert run.raws[0].size == 256 << 20
    assert peak < 64 << 20


def epochs(source, tp=int):
    """The chunks of each epoch."""
    planner, found = source.planner(tp, lambda: 0), []
    while chunks := planner.poll():
        for chunk in chunks:
            planner.advance(chunk)
        found.append(chunks)
    return found


def test_many_small_files_are_several_epochs(tmp_path):
    for number in range(MAX_FILES_PER_EPOCH + 1):
        (tmp_path / f"{number:05}.jsonl").write_text("1\n")
    assert list(map(len, epochs(JsonLines(str(tmp_path))))) == [MAX_FILES_PER_EPOCH, 1]


def test_an_epoch_reads_so_many_rows_at_the_most(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text("1\n22\n333\n4444\n5\n")
    found = epochs(JsonLines(str(tmp_path), max_rows_per_epoch=4))
    reader = JsonLines(str(tmp_path)).reader(int)
    assert [sum(map(reader.count, chunks)) for chunks in found] == [4, 4, 2]
    values = [
        v for chunks in found for c in chunks for r in reader.batches(c) for v in reader.decode(r)
    ]
    assert values == [1, 22, 333, 4444, 5] * 2


@pytest.mark.parametrize("what", ["bytes", "rows", "files"])
def test_a_limit_lets_an_epoch_read_something(tmp_path, what):
    [problem] = JsonLines(str(tmp_path), **{f"max_{what}_per_epoch": 0}).problems("items", None)
    assert problem.code == "no-progress"
    assert f"may read 0 {what} in an epoch" in problem.message
    assert Path(tmp_path).exists()
