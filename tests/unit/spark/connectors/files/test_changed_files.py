"""A file that changes after it was read is never passed over: refused, or read on if files grow."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutwater as cw
from cutwater.errors import InputError
from cutwater.spark.checkpoint.offset_log import ChunkLog
from cutwater.spark.connectors.base.watermarks import Numbering
from cutwater.spark.connectors.files import watching
from cutwater.spark.connectors.files.csv_source import Csv
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.parquet_source import Parquet


@dataclass(frozen=True)
class Item:
    name: str
    size: int


class Wall:
    """A wall clock that goes when it is told to."""

    def __init__(self):
        self.time = 1e9

    def __call__(self):
        return self.time


@pytest.fixture
def now():
    return Wall()


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "in"
    made.mkdir()
    return made


@pytest.fixture
def log(folder, tmp_path, now):
    def opened(kind=JsonLines, tp=int, **settings):
        return ChunkLog(kind(str(folder), **settings), tp, tmp_path / "log", Numbering(), now)

    return opened


def put(folder, name, text, at=None):
    """Write a file whole, or append to it; the clock of files is coarse, so times are told."""
    path = folder / name
    with path.open("a") as file:
        file.write(text)
    stamp = path.stat().st_mtime_ns if at is None else at
    os.utime(path, ns=(stamp, stamp))
    return path


def replace(folder, name, text):
    (folder / name).unlink()
    return put(folder, name, text, at=7)


def settle(folder):
    """Let the last change of the folder be long ago."""
    os.utime(folder, ns=(5, 5))


def read(log, number):
    return [
        value
        for chunk in log.read(number)
        for run in log._plan._reader.batches(chunk)
        for value in [log._plan._reader.enter(chunk), *log._plan._reader.decode(run)][1:]
    ]


CHANGES = {
    "appended to": lambda folder: put(folder, "a", "2\n", at=9),
    "made again": lambda folder: replace(folder, "a", "3\n"),
    "made again, longer": lambda folder: replace(folder, "a", "3\n4\n"),
    "cut": lambda folder: (folder / "a").write_text(""),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_file_that_changed_after_it_was_read_is_refused(folder, log, change, is_restarted):
    put(folder, "a", "1\n")
    files = log()
    assert files.extend() == 1
    if is_restarted:
        files = log()
    CHANGES[change](folder)
    with pytest.raises(InputError, match="changed-file") as refused:
        files.extend()
    assert str(folder / "a") in str(refused.value)


def test_each_of_many_files_is_looked_at_within_a_minute(folder, log, now):
    for number in range(500):
        put(folder, f"{number:03}", "1\n")
    files = log()
    files.extend()
    put(folder, "007", "2\n", at=9)

    def a_minute():
        for _ in range(61):
            now.time += 1
            files.extend()

    with pytest.raises(InputError, match="changed-file"):
        a_minute()


def test_a_run_that_catches_up_looks_at_every_file_first(folder, log):
    """It may be over before each had its turn."""
    for number in range(500):
        put(folder, f"{number:03}", "1\n")
    log().extend()
    put(folder, "007", "2\n", at=9)
    with pytest.raises(InputError, match="changed-file"):
        log().freeze()


def test_a_file_that_was_read_may_go_and_come_back_as_it_was(folder, log):
    path = put(folder, "a", "1\n", at=3)
    files = log()
    files.extend()
    path.unlink()
    assert files.extend() == 1
    put(folder, "a", "1\n", at=3)
    assert files.extend() == 1
    path.unlink()
    put(folder, "a", "1\n", at=4)
    with pytest.raises(InputError, match="changed-file"):
        files.extend()


# --- what a poll costs ------------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch):
    """How often a folder is listed, and a file looked at."""
    counts = {"scandir": 0, "stat": 0}

    def counted(name, real):
        def call(*args, **kwargs):
            counts[name] += 1
            return real(*args, **kwargs)

        return call

    monkeypatch.setattr(os, "scandir", counted("scandir", os.scandir))
    monkeypatch.setattr(Path, "stat", counted("stat", Path.stat))
    return counts


def polled(files, calls):
    before = dict(calls)
    files.extend()
    return {name: calls[name] - before[name] for name in calls}


def test_an_idle_poll_lists_nothing_and_looks_at_few(folder, log, calls, now):
    for number in range(1000):
        put(folder, f"{number:03}", "1\n")
    settle(folder)
    files = log()
    files.extend()
    assert polled(files, calls) == {"scandir": 0, "stat": 1 + watching._RECENT}
    now.time += 6  # a tenth of a minute: a tenth of the files
    assert polled(files, calls) == {"scandir": 0, "stat": 1 + watching._RECENT + 100}


def test_empty_files_cost_an_idle_poll_no_more(folder, log, calls):
    for number in range(1000):
        put(folder, f"{number:03}", "")
    settle(folder)
    files = log()
    files.extend()
    assert polled(files, calls) == {"scandir": 0, "stat": 1 + watching._RECENT}


def test_an_old_empty_file_is_read_within_a_minute_of_having_something(folder, log, now):
    for number in range(500):
        put(folder, f"{number:03}", "")
    settle(folder)
    files = log()
    assert files.extend() == 0
    put(folder, "007", "1\n")
    now.time += 60
    assert files.extend() == 1


def test_a_folder_that_has_just_changed_is_listed_again(folder, log, calls, now):
    """Two names may come within one tick of the clock of the file system."""
    put(folder, "a", "1\n")
    stamp = int((now.time - 1) * 1e9)
    os.utime(folder, ns=(stamp, stamp))
    files = log()
    files.extend()
    put(folder, "b", "2\n")
    os.utime(folder, ns=(stamp, stamp))
    assert files.extend() == 2
    now.time += 10
    assert polled(files, calls)["scandir"] == 1
    assert polled(files, calls)["scandir"] == 0


def test_a_folder_without_times_is_listed_once_a_minute_and_then_always(folder, log, calls, now):
    put(folder, "a", "1\n")
    settle(folder)
    files = log()
    files.extend()
    put(folder, "b", "2\n")
    settle(folder)
    assert files.extend() == 1
    now.time += 60
    assert files.extend() == 2
    put(folder, "c", "3\n")
    settle(folder)
    assert files.extend() == 3


# --- files that grow --------------------------------------------------------------------------


def test_what_is_appended_is_read_on(folder, log):
    put(folder, "a", "1\n2\n")
    files = log(grows=True)
    assert files.extend() == 1
    assert files.extend() == 1
    put(folder, "a", "3\n", at=9)
    assert files.extend() == 2
    assert (read(files, 1), read(files, 2)) == ([1, 2], [3])
    again = log(grows=True)
    assert again.extend() == 2
    put(folder, "a", "4\n", at=10)
    assert again.extend() == 3
    assert read(again, 3) == [4]
    assert [read(again, number) for number in (1, 2)] == [[1, 2], [3]], "a replay reads the same"
    assert {chunk.number for number in (1, 2, 3) for chunk in again.read(number)} == {0}


def test_a_line_without_its_end_waits_for_it(folder, log):
    put(folder, "a", "1\n2")
    files = log(grows=True)
    assert files.extend() == 1
    put(folder, "a", "3", at=9)
    assert files.extend() == 1
    put(folder, "a", "\n", at=10)
    assert files.extend() == 2
    assert (read(files, 1), read(files, 2)) == ([1], [23])


@pytest.mark.parametrize("change", ["made again", "made again, longer", "cut"])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_file_that_did_not_only_grow_is_refused(folder, log, change, is_restarted):
    put(folder, "a", "1\n")
    files = log(grows=True)
    files.extend()
    if is_restarted:
        files = log(grows=True)
    CHANGES[change](folder)
    with pytest.raises(InputError, match="changed-file"):
        files.extend()
    with pytest.raises(InputError, match="changed-file"):
        read(files, 1)


def test_a_file_that_was_read_before_files_grew_is_refused_if_it_does(folder, log):
    """Its last line may have been read without its end."""
    put(folder, "a", "1\n2")
    log().extend()
    files = log(grows=True)
    assert files.extend() == 1
    put(folder, "a", "3\n", at=9)
    with pytest.raises(InputError, match="changed-file"):
        files.extend()


def test_a_run_that_catches_up_reads_what_was_there_and_ends(folder, log):
    put(folder, "a", "1\n")
    log(grows=True).extend()
    put(folder, "a", "2\n", at=9)
    files = log(grows=True)
    files.freeze()
    put(folder, "a", "3\n", at=10)
    assert files.extend() == files.extend() == 2
    assert read(files, 2) == [2]
    later = log(grows=True)
    assert later.extend() == 3
    assert read(later, 3) == [3]


def test_files_that_grow_take_turns(folder, log):
    for name in "abc":
        put(folder, name, "1\n" * 4)
    files = log(grows=True, max_bytes_per_epoch=4)
    for _ in range(12):
        files.extend()
    for name in "abc":
        put(folder, name, "2\n" * 40, at=9)
    before = files.newest
    for _ in range(6):
        files.extend()
    entries = [files.read(number) for number in range(before + 1, files.newest + 1)]
    assert [chunk.number for (chunk,) in entries] == [0, 1, 2, 0, 1, 2]


def test_rows_of_csv_are_read_on_below_their_header(folder, log):
    put(folder, "a", "size,na")
    files = log(Csv, Item, grows=True)
    assert files.extend() == 0
    put(folder, "a", 'me\n1,a\n2,"b\n', at=9)
    assert files.extend() == 1
    assert read(files, 1) == [Item("a", 1)]
    put(folder, "a", 'c"\n3,d\n', at=10)
    assert files.extend() == 2
    assert read(files, 2) == [Item("b\nc", 2), Item("d", 3)]


def test_a_quote_that_is_never_closed_does_not_hold_up_a_file_for_ever(folder, log):
    put(folder, "a", 'size,name\n1,"a\n')
    files = log(Csv, Item, grows=True)
    assert files.extend() == 0
    put(folder, "a", "2,b\n" * (1 << 18) + "3,c\n", at=9)
    assert files.extend() == 1


def test_parquet_cannot_grow(folder):
    flow = cw.Flow("f")
    flow.source("items", Item)
    problems = list(Parquet(str(folder), grows=True).problems("items", flow.steps[0]))
    assert [problem.code for problem in problems] == ["cannot-grow"]


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_time_in_which_nothing_can_be_looked_at_is_refused(folder, seconds):
    flow = cw.Flow("f")
    flow.source("items", Item)
    problems = list(JsonLines(str(folder), recheck_every=seconds).problems("items", flow.steps[0]))
    assert [problem.code for problem in problems] == ["not-a-duration"]


@given(
    growth=st.lists(st.tuples(st.sampled_from("ab"), st.text("1\n", max_size=6)), max_size=8),
    max_bytes=st.integers(1, 9),
    starts=st.booleans(),
)
def test_every_whole_line_of_files_that_grow_is_read_once(
    tmp_path_factory, growth, max_bytes, starts
):
    root = tmp_path_factory.mktemp("grows")
    (root / "in").mkdir()
    source = JsonLines(str(root / "in"), grows=True, max_bytes_per_epoch=max_bytes)

    def opened():
        return ChunkLog(source, int, root / "log")

    log = opened()
    for at, (name, text) in enumerate(growth):
        put(root / "in", name, text, at=at)
        log.extend()
        if starts:
            log = opened()
    while log.extend() != log.extend():
        pass
    found = {"a": b"", "b": b""}
    for number in range(1, log.newest + 1):
        for chunk in log.read(number):
            path = Path(chunk.about["path"])
            found[path.name] += path.read_bytes()[chunk.start : chunk.end]
    for name, text in found.items():
        path = root / "in" / name
        whole = path.read_bytes() if path.exists() else b""
        assert text == whole[: whole.rfind(b"\n") + 1]
