"""The clock of a source: newest times, numbers, and what is complete, whatever epochs read."""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import pytest
from file_logs import FileLog
from hypothesis import given
from hypothesis import strategies as st

import cutwater as cw
from cutwater.errors import InputError
from cutwater.flow.fusing import plan
from cutwater.spark.sources.clock import Clock, Numbering
from cutwater.spark.sources.feed import Chunk, Run
from cutwater.spark.sources.json_lines import JsonLines
from cutwater.spark.sources.reader import shares


@dataclass(frozen=True)
class Item:
    at: dt.datetime


def clock(tp=Item, delay=dt.timedelta(seconds=2)):
    flow = cw.Flow("times")
    flow.sink("out", flow.source("items", tp, time="at", watermark=cw.bounded_delay(delay)))
    (segment,) = plan(flow).segments
    return Clock(segment.source, segment.given)


def time(text):
    return dt.datetime.fromisoformat(text)


def read(ticking, before, *lines):
    """What a clock keeps after these lines."""
    reader = JsonLines("").reader(Item)
    reader.runs = lambda _chunk: [Run(lines, range(len(lines)))]
    reader.count = lambda _chunk: len(lines)
    return ticking.after(before, reader, Chunk(0, 0, 1))


def test_the_newest_time_is_kept_in_a_form_that_json_has():
    ticking = clock()
    newest = ticking.newest(None, [time("2024-01-01T00:00:05Z")])
    assert newest == "2024-01-01T00:00:05Z"
    assert ticking.newest(newest, [time("2024-01-01T00:00:03Z")]) == newest
    assert ticking.completed(newest) == dt.datetime(2024, 1, 1, 0, 0, 2, 999999, tzinfo=dt.UTC)
    assert ticking.completed(None) is None


def test_bad_records_have_no_time():
    lines = [b"nonsense", b'{"at": "2024-01-01T00:00:05Z"}', b'{"at": 3}', b"\xff"]
    assert read(clock(), None, *lines) == "2024-01-01T00:00:05Z"
    assert read(clock(), None, *lines[2:]) is None


def test_times_that_do_not_compare_are_a_sentence():
    with pytest.raises(InputError, match="not-a-time"):
        clock().newest(None, [time("2024-01-01T00:00:05Z"), time("2024-01-01T00:00:05")])


def test_records_are_numbered_and_each_epoch_completes_what_it_numbered():
    numbering = Numbering()
    assert numbering.completed(None) is None
    count = read(numbering, None, b"1", b"not a record")
    assert (count, numbering.completed(count), numbering.first(count)) == (2, 1, 2)
    assert read(numbering, count) == 2


@given(
    st.lists(st.lists(st.sampled_from(["a", "bb", "", " "]), max_size=6), max_size=4),
    st.integers(1, 40),
    st.integers(1, 4),
)
def test_numbers_do_not_depend_on_how_files_are_cut(tmp_path_factory, files, max_bytes, parts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JsonLines, "smallest_share", 1)
        assert_numbered(tmp_path_factory.mktemp("numbers"), files, max_bytes, parts)


def assert_numbered(root, files, max_bytes, parts):
    folder = root / "in"
    folder.mkdir()
    for number, lines in enumerate(files):
        (folder / str(number)).write_text("".join(text + "\n" for text in lines))
    log = FileLog(folder, root / "log", Numbering())
    feed = JsonLines(str(folder))
    firsts = []
    entries = 0
    while log.take(max_bytes) > entries:
        entries += 1
        for share in shares(feed, log.read(entries), parts, feed.reader(str)):
            for chunk in share:
                text = Path(chunk.about["path"]).read_text()[chunk.start : chunk.end]
                records = [line for line in text.split("\n") if line.strip()]
                firsts += range(chunk.first, chunk.first + len(records))
    total = sum(bool(text.strip()) for lines in files for text in lines)
    assert firsts == list(range(total))
