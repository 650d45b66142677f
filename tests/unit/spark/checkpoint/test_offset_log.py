"""The log of files: every line has one position, whatever comes between."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.connectors.file_logs import FileLog

from cutwater.errors import InputError, RunError
from cutwater.spark.connectors.base.watermarks import Numbering
from cutwater.spark.connectors.files.listing import check_unchanged
from cutwater.spark.connectors.files.text import split_at_lines
from cutwater.spark.storage import entry_log as entrylog
from cutwater.spark.storage.durable import write_json


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "in"
    made.mkdir()
    return made


@pytest.fixture
def log(folder, tmp_path):
    return lambda: FileLog(folder, tmp_path / "log")


def spans(chunks):
    return [(Path(c.about["path"]).name, c.number, c.start, c.end) for c in chunks]


def text_of(chunks):
    return b"".join(Path(c.about["path"]).read_bytes()[c.start : c.end] for c in chunks)


def test_files_are_numbered_in_the_order_in_which_they_are_first_seen(folder, log):
    (folder / "b").write_text("1\n")
    (folder / "c").write_text("2\n")
    files = log()
    assert files.take(100) == 1
    (folder / "a").write_text("3\n")
    assert files.take(100) == 2
    assert spans(files.read(1)) == [("b", 0, 0, 2), ("c", 1, 0, 2)]
    assert spans(files.read(2)) == [("a", 2, 0, 2)]


def test_nothing_new_makes_no_entry(folder, log):
    files = log()
    assert files.take(100) == 0
    (folder / "a").write_text("1\n")
    assert files.take(100) == 1
    assert files.take(100) == 1
    assert files.newest == 1


def test_names_with_a_dot_or_underscore_and_folders_are_passed_over(folder, log):
    for name in (".hidden", "_underscore", "plain", "with.dot"):
        (folder / name).write_text("1\n")
    (folder / "below").mkdir()
    (folder / "below" / "deep").write_text("1\n")
    assert [Path(path).name for path in log().unread()] == ["plain", "with.dot"]


def test_a_file_is_split_over_epochs_at_the_ends_of_lines(folder, log):
    (folder / "a").write_text("11\n22\n33\n")
    (folder / "b").write_text("4\n")
    files = log()
    assert [files.take(4) for _ in range(3)] == [1, 2, 2]
    assert spans(files.read(1)) == [("a", 0, 0, 6)]
    assert spans(files.read(2)) == [("a", 0, 6, 9), ("b", 1, 0, 2)]


def test_a_line_longer_than_an_epoch_is_read_whole(folder, log):
    (folder / "a").write_text("1" * 50 + "\n2\n")
    files = log()
    files.take(1)
    files.take(1)
    assert spans(files.read(1)) == [("a", 0, 0, 51)]
    assert spans(files.read(2)) == [("a", 0, 51, 53)]


def test_a_log_that_is_opened_again_goes_on_where_it_was(folder, log):
    (folder / "a").write_text("11\n22\n33\n")
    (folder / "b").write_text("4\n")
    first = log()
    first.take(3)
    again = log()
    assert again.newest == 1
    again.take(100)
    assert spans(again.read(2)) == [("a", 0, 3, 9), ("b", 1, 0, 2)]
    assert log().unread() == []


def test_an_entry_that_is_there_does_not_depend_on_later_settings(folder, log):
    """An orphan (its epoch was never logged by Spark) is read as it was written."""
    (folder / "a").write_text("1\n2\n")
    first = log()
    first.take(1)
    (folder / "0").write_text("before a by name\n")
    assert spans(log().read(1)) == [("a", 0, 0, 2)]


def test_a_last_line_without_an_end_belongs_to_its_file(folder, log):
    (folder / "a").write_text("1\n2")
    files = log()
    files.take(2)
    files.take(2)
    assert spans(files.read(2)) == [("a", 0, 2, 3)]


def test_an_empty_file_is_read_when_it_has_something(folder, log):
    (folder / "a").write_text("")
    (folder / "b").write_text("1\n")
    files = log()
    assert files.take(100) == 1
    (folder / "a").write_text("2\n")
    assert files.take(100) == 2
    assert text_of(files.read(2)) == b"2\n"
    assert files.read(2)[0].number > files.read(1)[0].number


def test_a_file_that_goes_away_before_it_is_taken_is_no_error(folder, log, monkeypatch):
    files = log()
    (folder / "a").write_text("1\n")
    found = [str(folder / "gone"), str(folder / "a")]
    monkeypatch.setattr("cutwater.spark.connectors.files.listing.files_in", lambda _folder: found)
    assert files.take(100) == 1
    assert text_of(files.read(1)) == b"1\n"


@pytest.mark.parametrize("change", ["longer", "same size", "deleted"])
def test_a_file_that_changes_between_its_epochs_is_refused(folder, log, change):
    path = folder / "a"
    path.write_text("1\n2\n")
    files = log()
    files.take(2)
    if change == "deleted":
        path.unlink()
    else:
        path.write_text("1\n2\n3\n" if change == "longer" else "1\n3\n")
        os.utime(path, ns=(1, 1))
    with pytest.raises(InputError) as refused:
        files.take(2)
    (problem,) = refused.value.problems
    assert problem.code == ("unreadable-file" if change == "deleted" else "changed-file")
    assert str(path) in problem.message
    with pytest.raises(InputError):
        check_unchanged(files.read(1)[0])


def test_a_missing_entry_is_a_sentence(folder, log, tmp_path):
    for name in ("a", "b"):
        (folder / name).write_text("1\n")
        files = log()
        files.take(100)
    (tmp_path / "log" / "1.json").unlink()
    with pytest.raises(InputError, match="missing-entry"):
        log()


def test_a_damaged_entry_is_a_sentence(folder, log, tmp_path):
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "1.json").write_text("[{")
    with pytest.raises(RunError, match="damaged-file"):
        log()


def test_a_half_written_entry_does_not_count(folder, log, tmp_path):
    (folder / "a").write_text("1\n")
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / ".1.json.123.new").write_text("[{")
    files = log()
    assert files.newest == 0
    assert files.take(100) == 1


def test_names_that_are_not_unicode_survive_the_log(folder, log):
    try:
        (folder / os.fsdecode(b"\xff")).write_text("1\n")
    except OSError:
        return  # this file system has only Unicode names
    files = log()
    files.take(100)
    assert text_of(log().read(1)) == b"1\n"
    json.loads((folder.parent / "log" / "1.json").read_bytes())


LINES = st.lists(st.binary(max_size=6).filter(lambda line: b"\n" not in line), max_size=8)


@given(
    files=st.lists(st.tuples(LINES, st.booleans()), max_size=4),
    sizes=st.lists(st.integers(1, 20), min_size=1),
    is_reopened=st.booleans(),
)
def test_every_byte_is_in_exactly_one_entry_and_cuts_are_at_ends_of_lines(
    tmp_path_factory, files, sizes, is_reopened
):
    root = tmp_path_factory.mktemp("filelog")
    (root / "in").mkdir()
    wanted = b""
    for number, (lines, has_end) in enumerate(files):
        data = b"\n".join(lines) + (b"\n" if has_end and lines else b"")
        (root / "in" / f"{number:03}").write_bytes(data)
        wanted += data
    log, read = FileLog(root / "in", root / "log"), b""
    for turn in range(1000):
        if is_reopened:
            log = FileLog(root / "in", root / "log")
        before = log.newest
        if log.take(sizes[turn % len(sizes)]) == before:
            break
        for chunk in log.read(log.newest):
            read += text_of([chunk])
            assert chunk.end == chunk.about["size"] or text_of([chunk]).endswith(b"\n")
    assert read == wanted


@given(LINES, st.integers(1, 40), st.integers(0, 40))
def test_split_at_lines_ends_at_a_line_and_not_before_it_must(tmp_path_factory, lines, size, start):
    data = b"\n".join(lines)
    path = tmp_path_factory.mktemp("split") / "file"
    path.write_bytes(data)
    starts = [i for i in range(len(data)) if i == 0 or data[i - 1 : i] == b"\n"]
    if not starts:
        return
    begin = starts[start % len(starts)]
    end = split_at_lines(str(path), begin, len(data), size)
    assert end == len(data) or data[end - 1 : end] == b"\n"
    assert end >= min(begin + size, len(data))
    assert b"\n" not in data[begin + size : end - 1]


a_round = st.tuples(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 4), max_size=3),
    st.integers(1, 9),
    st.booleans(),
)


@given(rounds=st.lists(a_round, max_size=12))
def test_a_log_that_is_compacted_is_the_log_that_is_not(tmp_path_factory, rounds):
    """The same entries for the same arrivals, over any number of starts."""
    root = tmp_path_factory.mktemp("logs")
    folder = root / "in"
    folder.mkdir()

    def opened():
        return {name: FileLog(folder, root / name, Numbering(), lambda: 0.0) for name in kept}

    kept = {"compacted": 1, "plain": 10**6}
    logs = opened()
    with pytest.MonkeyPatch.context() as patch:
        for files, max_bytes, is_new_start in rounds:
            for name, lines in files.items():
                if not (folder / name).exists():
                    (folder / name).write_text("1\n" * lines)
            if is_new_start:
                logs = opened()
            unread = {name: log.unread() for name, log in logs.items()}
            assert unread["compacted"] == unread["plain"]
            for name, log in logs.items():
                patch.setattr(entrylog, "KEPT", kept[name])
                log.take(max_bytes)
            compacted, plain = logs["compacted"], logs["plain"]
            assert compacted.newest == plain.newest
            for number in range(1, plain.newest + 1):
                assert compacted.read(number) == plain.read(number)
    assert len(list((root / "compacted").iterdir())) <= 4


def test_a_log_of_an_earlier_version_goes_on(folder, log, tmp_path):
    """As it was written when JSON lines were the only kind: a decision, then half a file."""
    path = folder / "a"
    path.write_text("1\n2\n")
    found = path.stat()
    decision = {"number": -1, "path": "", "size": 0, "modified_ns": 0, "start": 0, "end": 0}
    half = {
        "number": 0,
        "path": str(path),
        "size": found.st_size,
        "modified_ns": found.st_mtime_ns,
        "start": 0,
        "end": 2,
    }
    later = {"newest_before": None, "newest_after": 7, "first": 0, "planned": 1.5}
    (tmp_path / "log").mkdir()
    for number, chunk in enumerate((decision, half), 1):
        write_json(tmp_path / "log" / f"{number}.json", [{**chunk, **later}])
    files = log()
    assert [chunk.is_decision for number in (1, 2) for chunk in files.read(number)] == [True, False]
    assert files.quiet_since() == 1.5
    assert files.take(100) == 3
    assert spans(files.read(3)) == [("a", 0, 2, 4)]
    assert files.read(3)[0].newest_before == 7
    written = json.loads((tmp_path / "log" / "3.json").read_text())
    assert written[0].keys() == {**half, **later}.keys()
