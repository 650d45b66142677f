"""The log of entries: compaction loses nothing, wherever it is cut off."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.errors import InputError, RunError
from cutwater.spark.storage import entry_log as entrylog
from cutwater.spark.storage.durable import write_json
from cutwater.spark.storage.entry_log import KEPT, EntryLog


class Killed(Exception):
    """The process is gone."""


def opened(folder):
    """A log and the entries it was opened with."""
    found = []
    return EntryLog(folder, "the log", found.append), found


def entry(number):
    return [{"path": f"file {number}", "start": number}]


def filled(folder, count):
    log, _ = opened(folder)
    for number in range(1, count + 1):
        assert log.append(entry(number)) == number
    return log


def test_many_entries_leave_few_files_and_all_can_be_read(tmp_path):
    log, counts = opened(tmp_path)[0], []
    for number in range(1, 501):
        log.append(entry(number))
        counts.append(sum(1 for _ in tmp_path.iterdir()))
    assert max(counts) <= 2 * KEPT + 2
    again, found = opened(tmp_path)
    assert found == [entry(number) for number in range(1, 501)]
    assert again.newest == log.newest == 500
    for number in (1, 2, 300, 500 - KEPT, 500):
        assert log.read(number) == again.read(number) == entry(number)


def test_an_infinity_is_compacted_like_any_number(tmp_path, monkeypatch):
    monkeypatch.setattr(entrylog, "KEPT", 1)
    log, _ = opened(tmp_path)
    for number in (float("inf"), 1e308, -float("inf"), 0):
        log.append([{"path": "a", "newest_after": number}])
    (first, *_, third, _) = opened(tmp_path)[1]
    assert (first[0]["newest_after"], third[0]["newest_after"]) == (float("inf"), -float("inf"))


def test_the_newest_entries_have_files_of_their_own(tmp_path):
    filled(tmp_path, 10 * KEPT)
    newest = range(9 * KEPT + 1, 10 * KEPT + 1)
    assert all((tmp_path / f"{number}.json").exists() for number in newest)


def test_a_log_of_files_alone_is_read_and_compacted(tmp_path):
    """As they were written before there was compaction."""
    for number in range(1, 301):
        write_json(tmp_path / f"{number}.json", entry(number))
    log, found = opened(tmp_path)
    assert found == [entry(number) for number in range(1, 301)]
    log.append(entry(301))
    assert sum(1 for _ in tmp_path.iterdir()) == KEPT + 1
    assert opened(tmp_path)[1] == [*found, entry(301)]


def test_appending_reads_only_what_is_new(tmp_path, monkeypatch):
    """The compacted file is read when the log is opened, and never again."""
    filled(tmp_path, 4 * KEPT)
    log, _ = opened(tmp_path)
    monkeypatch.setattr(EntryLog, "_lines", lambda self: pytest.fail("read again"))
    sizes = [(tmp_path / "compacted.jsonl").stat().st_size]
    for number in range(4 * KEPT + 1, 8 * KEPT):
        log.append(entry(number))
        sizes.append((tmp_path / "compacted.jsonl").stat().st_size)
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("missing", [1, KEPT, 2 * KEPT])
def test_an_entry_that_is_missing_is_refused(tmp_path, missing):
    filled(tmp_path, 2 * KEPT)
    if missing < 2 * KEPT:
        (tmp_path / f"{missing}.json").unlink()
        with pytest.raises(InputError, match=rf"{missing}\.json is missing"):
            opened(tmp_path)
    else:
        with pytest.raises(InputError, match=rf"{missing + 1}\.json is missing"):
            opened(tmp_path)[0].read(missing + 1)


@pytest.mark.parametrize("line", [0, 5])
def test_a_compacted_file_that_is_damaged_is_refused(tmp_path, line):
    filled(tmp_path, 4 * KEPT)
    path = tmp_path / "compacted.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line] = b"x" + lines[line][1:]
    path.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=rf"{line + 1}\.json is missing"):
        opened(tmp_path)


def test_an_entry_that_is_damaged_is_refused(tmp_path):
    filled(tmp_path, 3)
    (tmp_path / "2.json").write_text("[{")
    with pytest.raises(RunError, match="damaged-file"):
        opened(tmp_path)


def test_of_two_that_write_one_entry_the_first_counts(tmp_path):
    """One of them was taken for dead."""
    filled(tmp_path, 3)
    (slow, _), (quick, _) = opened(tmp_path), opened(tmp_path)
    quick.append(entry(4))
    with pytest.raises(RunError, match="fenced"):
        slow.append(entry(5))
    assert quick.append(entry(5)) == 5
    assert opened(tmp_path)[1] == [entry(number) for number in range(1, 6)]
    assert {path.suffix for path in tmp_path.iterdir()} == {".json"}


def dies_after(patch, steps):
    """Let so many steps on the disk succeed, and none after them."""
    left = iter(range(steps))

    def step(real):
        def last_one(*args, **kwargs):
            if next(left, None) is None:
                raise Killed
            return real(*args, **kwargs)

        return last_one

    patch.setattr(os, "fsync", step(lambda _file: None))
    for name in ("hardlink_to", "replace", "unlink"):
        patch.setattr(Path, name, step(getattr(Path, name)))


def tear(path, durable, share):
    """What was written behind the durable bytes is there in part, or as zeros."""
    data = path.read_bytes() if path.exists() else b""
    kept = durable + int((len(data) - durable) * share)
    if len(data) > kept:
        path.write_bytes(data[:kept] + (b"\0" * (len(data) - kept) if share > 0.5 else b""))


a_life = st.tuples(st.integers(0, 30), st.integers(0, 90), st.sampled_from([0, 0.3, 0.7, 0.99, 1]))


@given(lives=st.lists(a_life, max_size=6))
def test_a_log_that_is_killed_again_and_again_is_the_log_that_was_written(lives):
    """Each life opens the log, appends entries, and may die at any step on the disk."""
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(entrylog, "KEPT", 3)
        folder, written = Path(place), 0
        for appends, steps, share in [*lives, (0, 0, 1)]:
            log, found = opened(folder)
            assert found == [entry(number) for number in range(1, log.newest + 1)]
            assert written <= log.newest <= written + 1
            assert [log.read(n) for n in range(1, log.newest + 1)] == found
            written = log.newest
            with patch.context() as mortal:
                dies_after(mortal, steps)
                try:
                    for _ in range(appends):
                        written = log.append(entry(log.newest + 1))
                except Killed:
                    pass
            tear(folder / "compacted.jsonl", log._bytes, share)
            # a life that ends right after it wrote leaves one that the next cleans up with its own
            assert len(list(folder.glob("[0-9]*"))) <= 2 * 3 + 1 + len(lives)
