"""The clock of a source: newest times, numbers, and what is complete, whatever epochs read."""

import datetime as dt
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutwater as cw
from cutwater.errors import InputError
from cutwater.flow.fusing import plan
from cutwater.spark import lines as lines_module
from cutwater.spark.clock import Clock, Numbering
from cutwater.spark.filelog import FileLog


@dataclass(frozen=True)
class Item:
    at: dt.datetime


def clock(tp=Item, delay=dt.timedelta(seconds=2)):
    flow = cw.Flow("times")
    flow.sink("out", flow.source("items", tp, time="at", watermark=cw.bounded_delay(delay)))
    (segment,) = plan(flow).segments
    return Clock(segment.source, segment.given)


def line(text):
    return b'{"at": "%s"}' % text.encode()


def test_the_newest_time_is_kept_in_a_form_that_json_has():
    ticking = clock()
    newest = ticking.newest(None, [line("2024-01-01T00:00:05Z"), b"nonsense", b""])
    assert newest == "2024-01-01T00:00:05Z"
    assert ticking.newest(newest, [line("2024-01-01T00:00:03Z")]) == newest
    assert ticking.completed(newest) == dt.datetime(2024, 1, 1, 0, 0, 2, 999999, tzinfo=dt.UTC)
    assert ticking.completed(None) is None


def test_times_that_do_not_compare_are_a_sentence():
    with pytest.raises(InputError, match="not-a-time"):
        clock().newest(None, [line("2024-01-01T00:00:05Z"), line("2024-01-01T00:00:05")])


def test_records_are_numbered_and_each_epoch_completes_what_it_numbered():
    numbering = Numbering()
    assert numbering.completed(None) is None
    count = numbering.newest(None, [b"1", b"", b"  ", b"2"])
    assert (count, numbering.completed(count), numbering.first(count)) == (2, 1, 2)
    assert numbering.newest(count, []) == 2


@given(
    st.lists(st.lists(st.sampled_from(["a", "bb", "", " "]), max_size=6), max_size=4),
    st.integers(1, 40),
    st.integers(1, 4),
)
def test_numbers_do_not_depend_on_how_files_are_cut(tmp_path_factory, files, max_bytes, parts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "SMALLEST_SHARE", 1)
        assert_numbered(tmp_path_factory.mktemp("numbers"), files, max_bytes, parts)


def assert_numbered(root, files, max_bytes, parts):
    folder = root / "in"
    folder.mkdir()
    for number, lines in enumerate(files):
        (folder / str(number)).write_text("".join(text + "\n" for text in lines))
    log = FileLog(folder, root / "log", Numbering())
    firsts = []
    entries = 0
    while log.extend(log.unread(), max_bytes) > entries:
        entries += 1
        for part in lines_module._shares(log.read(entries), parts, Numbering()):
            for chunk in part.chunks:
                text = (folder / str(chunk.path)).read_text()[chunk.start : chunk.end]
                records = [line for line in text.split("\n") if line.strip()]
                firsts += range(chunk.first, chunk.first + len(records))
    total = sum(bool(text.strip()) for lines in files for text in lines)
    assert firsts == list(range(total))
