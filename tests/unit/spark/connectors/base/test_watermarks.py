"""The watermark of a source: newest times, numbers, and what is complete, whatever epochs read."""

import datetime as dt
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.connectors.file_logs import FileLog

import cutwater as cw
from cutwater.flow.fusing import plan
from cutwater.spark.connectors.base.source import Chunk, RawBatch
from cutwater.spark.connectors.base.watermarks import (
    Numbering,
    PartitionWatermarkTracker,
    WatermarkTracker,
    newest_of,
)
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.microbatch.source_reader import shares


@dataclass(frozen=True)
class Item:
    at: dt.datetime


def tracker(tp=Item, delay=dt.timedelta(seconds=2)):
    flow = cw.Flow("times")
    flow.sink("out", flow.source("items", tp, time="at", watermark=cw.bounded_delay(delay)))
    (segment,) = plan(flow).segments
    return WatermarkTracker(segment.source, segment.input_type)


def time(text):
    return dt.datetime.fromisoformat(text)


def read(tracked, before, *lines):
    """What a watermark tracker keeps after these lines."""
    reader = JsonLines("").reader(Item)
    reader.batches = lambda _chunk: [RawBatch(lines, range(len(lines)))]
    reader.count = lambda _chunk: len(lines)
    return tracked.after(before, reader, Chunk(0, 0, 1))


def test_the_newest_time_is_kept_in_a_form_that_json_has():
    tracked = tracker()
    newest = tracked.newest(None, [time("2024-01-01T00:00:05Z")])
    assert newest == "2024-01-01T00:00:05Z"
    assert tracked.newest(newest, [time("2024-01-01T00:00:03Z")]) == newest
    assert tracked.completed(newest) == dt.datetime(2024, 1, 1, 0, 0, 2, 999999, tzinfo=dt.UTC)
    assert tracked.completed(None) is None


def test_bad_records_have_no_time():
    lines = [b"nonsense", b'{"at": "2024-01-01T00:00:05Z"}', b'{"at": 3}', b"\xff"]
    assert read(tracker(), None, *lines) == "2024-01-01T00:00:05Z"
    assert read(tracker(), None, *lines[2:]) is None


def test_a_time_that_does_not_compare_with_the_first_does_not_count():
    found = tracker().newest(None, [time("2024-01-01T00:00:05Z"), time("2024-01-01T00:00:06")])
    assert found == "2024-01-01T00:00:05Z"


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
        patch.setattr(JsonLines, "min_task_weight", 1)
        assert_numbered(tmp_path_factory.mktemp("numbers"), files, max_bytes, parts)


def assert_numbered(root, files, max_bytes, parts):
    folder = root / "in"
    folder.mkdir()
    for number, lines in enumerate(files):
        (folder / str(number)).write_text("".join(text + "\n" for text in lines))
    log = FileLog(folder, root / "log", Numbering())
    source = JsonLines(str(folder))
    firsts = []
    entries = 0
    while log.take(max_bytes) > entries:
        entries += 1
        for share in shares(source, log.read(entries), parts, source.reader(str)):
            for chunk in share:
                text = Path(chunk.about["path"]).read_text()[chunk.start : chunk.end]
                records = [line for line in text.split("\n") if line.strip()]
                firsts += range(chunk.first, chunk.first + len(records))
    total = sum(bool(text.strip()) for lines in files for text in lines)
    assert firsts == list(range(total))


@dataclass(frozen=True)
class Tick:
    at: int


DELAY = 2


def partition_tracker(patience=None):
    flow = cw.Flow("partitions")
    flow.sink("out", flow.source("items", Tick, time="at", watermark=cw.bounded_delay(DELAY)))
    (segment,) = plan(flow).segments
    return PartitionWatermarkTracker(segment.source, segment.input_type, patience)


def epoch_of(tracked, before, now, times):
    """What a watermark tracker keeps after an epoch that reads some times of some partitions."""
    reader, kept = JsonLines("").reader(Tick), before
    for partition, found in times.items():
        lines = [json.dumps({"at": at}).encode() for at in found]
        reader.batches = lambda _chunk, lines=lines: [RawBatch(lines, range(len(lines)))]
        kept = tracked.after(kept, reader, Chunk(partition, 0, len(lines), planned=now))
    return json.loads(json.dumps(tracked.settled(before, kept, now)))


# No two epochs are planned at one instant: a tracker could not tell their partitions apart.
EPOCHS = st.lists(
    st.tuples(
        st.integers(1, 6),
        st.dictionaries(st.integers(0, 2), st.lists(st.integers(0, 40), min_size=1, max_size=3)),
    ),
    max_size=8,
)


@given(EPOCHS, st.none() | st.integers(1, 10))
def test_complete_is_what_every_partition_that_counts_is_past_and_stays_so(epochs, patience):
    """Against what each partition alone would say."""
    tracked, kept, now = partition_tracker(patience), None, 0
    newest, behind, wanted = {}, {}, None
    for pause, times in epochs:
        now += pause
        if not times:
            continue
        kept = epoch_of(tracked, kept, now, times)
        for partition, found in times.items():
            newest[partition] = max([newest.get(partition, 0), *found])
        behind = {p: behind.get(p, now) for p in newest if p not in times}
        for partition in [p for p in behind if patience and now - behind[p] >= patience]:
            del newest[partition]
        least = min(newest.values()) - DELAY - 1
        wanted = least if wanted is None else max(wanted, least)
        assert tracked.completed(kept) == wanted
    every = [at for _, times in epochs for found in times.values() for at in found]
    assert newest_of(kept) == max(every, default=None)


def test_a_partition_that_lags_holds_the_others_back():
    tracked = partition_tracker()
    kept = epoch_of(tracked, None, 0, {0: [100], 1: [10]})
    kept = epoch_of(tracked, kept, 99, {0: [200]})
    assert tracked.completed(kept) == 10 - DELAY - 1
    kept = epoch_of(tracked, kept, 100, {1: [150]})
    assert tracked.completed(kept) == 150 - DELAY - 1


def test_a_silent_partition_is_let_go_and_its_return_takes_nothing_back():
    tracked = partition_tracker(patience=5)
    kept = epoch_of(tracked, None, 0, {0: [100], 1: [10]})
    kept = epoch_of(tracked, kept, 60, {0: [150]})  # all were silent before, so none is behind
    assert tracked.completed(kept) == 10 - DELAY - 1
    kept = epoch_of(tracked, kept, 65, {0: [200]})
    assert tracked.completed(kept) == 200 - DELAY - 1
    kept = epoch_of(tracked, kept, 67, {1: [11]})
    assert tracked.completed(kept) == 200 - DELAY - 1
    kept = epoch_of(tracked, kept, 68, {0: [300], 1: [250]})
    assert tracked.completed(kept) == 250 - DELAY - 1


@pytest.mark.parametrize("kept", [0, 30, {"newest": 5, "watermark of the others": 27}])
def test_what_was_kept_of_all_partitions_together_still_counts(kept):
    tracked = partition_tracker()
    before = tracker(Tick, DELAY).completed(kept)
    assert tracked.completed(kept) == before
    after = epoch_of(tracked, kept, 0, {0: [1]})
    assert tracked.completed(after) == max(before, 1 - DELAY - 1)


def test_what_is_kept_in_brief_completes_the_same():
    tracked = partition_tracker()
    kept = epoch_of(tracked, None, 0, {0: [100], 1: [10]})
    brief = tracked.brief(kept)
    assert (tracked.completed(brief), newest_of(brief)) == (tracked.completed(kept), 100)
    assert len(json.dumps(brief)) < len(json.dumps(kept))


def test_a_source_of_partitions_follows_others_until_it_is_past_them():
    tracked = partition_tracker()
    followed = tracked.following(None, 50)
    assert tracked.completed(followed) == 50
    kept = epoch_of(tracked, followed, 0, {0: [20]})
    assert tracked.completed(kept) == 50
    assert tracked.following(kept, 40) is None
    assert tracked.completed(epoch_of(tracked, kept, 1, {0: [99]})) == 99 - DELAY - 1
