"""The log of entries: nothing is lost, wherever it is cut off, and no run writes into another's."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.errors import FencedError, InputError, RunError
from cutwater.spark.storage import entry_log as entrylog
from cutwater.spark.storage import summary
from cutwater.spark.storage.entry_log import (
    KEPT,
    EntryLog,
    drop_unread,
    newest_entry,
    read_entry,
)


class Killed(Exception):
    """The process is gone."""


def opened(folder, generation=0, condense=list):
    """A log and the items it was opened with."""
    found = []
    log = EntryLog(folder, "the log", found.extend, generation=generation, condense=condense)
    return log, found


def entry(number):
    return [{"path": f"file {number}", "start": number}]


def items(*numbers):
    return [item for number in numbers for item in entry(number)]


def filled(folder, count, generation=0, condense=list):
    log, _ = opened(folder, generation, condense)
    for number in range(1, count + 1):
        assert log.append(entry(number)) == number
    return log


def latest(items):
    """Such entries need nothing of those before the last."""
    return items[-1:]


def test_many_entries_leave_few_files_and_all_that_they_held_is_noted(tmp_path):
    log, counts = opened(tmp_path)[0], []
    for number in range(1, 501):
        log.append(entry(number))
        counts.append(sum(path.is_file() for path in tmp_path.rglob("*")))
    assert max(counts) <= 2 * KEPT + 1
    again, found = opened(tmp_path)
    assert found == items(*range(1, 501))
    assert again.newest == log.newest == 500
    for number in (500 - KEPT + 1, 500):
        assert log.read(number) == again.read(number) == entry(number)


def test_what_no_replay_needs_is_condensed_and_the_log_stays_short(tmp_path, monkeypatch):
    monkeypatch.setattr(summary, "_WORTH_REWRITING", 1000)
    log, sizes = filled(tmp_path, 100, condense=latest), []
    for number in range(101, 3001):
        log.append(entry(number))
        sizes.append((tmp_path / "0" / "summary.jsonl").stat().st_size)
    assert max(sizes) < 1300
    assert opened(tmp_path, 1, latest)[1][-KEPT:] == items(*range(3001 - KEPT, 3001))


def test_a_summary_is_rewritten_when_as_much_was_appended(tmp_path, monkeypatch):
    """So writing is in proportion to what is kept, however much that is."""
    monkeypatch.setattr(summary, "_WORTH_REWRITING", 0)
    rewritten = []
    real = summary.SummaryFile.rewrite
    monkeypatch.setattr(
        summary.SummaryFile,
        "rewrite",
        lambda self, through, kept: (rewritten.append(through), real(self, through, kept)),
    )
    filled(tmp_path, 64 * KEPT)
    assert len(rewritten) < 10
    assert opened(tmp_path)[1] == items(*range(1, 64 * KEPT + 1))


def test_an_infinity_is_kept_like_any_number(tmp_path, monkeypatch):
    monkeypatch.setattr(entrylog, "KEPT", 1)
    log, _ = opened(tmp_path)
    for number in (float("inf"), 1e308, -float("inf"), 0):
        log.append([{"path": "a", "newest_after": number}])
    (first, *_, third, _) = opened(tmp_path)[1]
    assert (first["newest_after"], third["newest_after"]) == (float("inf"), -float("inf"))


def test_appending_reads_only_what_is_new(tmp_path, monkeypatch):
    """The summary is read when the log is opened, and again only to be rewritten."""
    filled(tmp_path, 4 * KEPT)
    log, _ = opened(tmp_path)
    monkeypatch.setattr(summary.SummaryFile, "read", lambda self: pytest.fail("read again"))
    for number in range(4 * KEPT + 1, 8 * KEPT):
        log.append(entry(number))


@pytest.mark.parametrize("missing", [1, KEPT, 2 * KEPT])
def test_an_entry_that_is_missing_is_refused(tmp_path, missing):
    filled(tmp_path, 2 * KEPT)
    if missing < 2 * KEPT:
        (tmp_path / "0" / f"{missing}.json").unlink()
        with pytest.raises(InputError, match=rf"{missing}\.json is missing"):
            opened(tmp_path)
    else:
        with pytest.raises(InputError, match=rf"{missing + 1}\.json is missing"):
            opened(tmp_path)[0].read(missing + 1)


@pytest.mark.parametrize("line", [0, 1])
def test_a_summary_that_is_damaged_is_refused(tmp_path, line):
    filled(tmp_path, 4 * KEPT)
    path = tmp_path / "0" / "summary.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line] = b"x" + lines[line][1:]
    path.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=r"\d+\.json is missing"):
        opened(tmp_path)


def test_an_entry_that_is_damaged_is_refused(tmp_path):
    filled(tmp_path, 3)
    (tmp_path / "0" / "2.json").write_text("[{")
    with pytest.raises(RunError, match="damaged-file"):
        opened(tmp_path)


# --- runs that were presumed dead --------------------------------------------------------------


def test_of_two_that_write_one_entry_the_first_counts(tmp_path):
    """Two processes of one run."""
    filled(tmp_path, 3)
    (slow, _), (quick, _) = opened(tmp_path), opened(tmp_path)
    quick.append(entry(4))
    with pytest.raises(RunError, match="fenced"):
        slow.append(entry(5))
    assert quick.append(entry(5)) == 5
    assert opened(tmp_path)[1] == items(*range(1, 6))
    assert {path.suffix for path in (tmp_path / "0").iterdir()} == {".json"}


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_run_that_was_overtaken_cannot_append(tmp_path, monkeypatch, is_gone):
    """Whether its successor could delete its folder, or not yet."""
    if not is_gone:
        monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    old = filled(tmp_path, 3, generation=1)
    new, _ = opened(tmp_path, generation=2)
    if is_gone:
        with pytest.raises(FencedError, match="generation 2 has taken the log"):
            old.append(["of a dead run"])
    else:
        old.append(["of a dead run"])
    assert new.append(entry(4)) == 4
    assert opened(tmp_path, generation=3)[1] == items(1, 2, 3, 4)


@pytest.mark.parametrize("step", ["read", "append", "unlink"])
def test_a_run_that_was_overtaken_cannot_shorten_the_log(tmp_path, monkeypatch, step):
    """It falls asleep while it compacts, its successor compacts further, and it wakes up."""
    old = filled(tmp_path, 2 * KEPT, generation=1)

    def successor():
        new, _ = opened(tmp_path, generation=2)
        for number in range(new.newest + 1, 10 * KEPT):
            new.append(entry(number))

    def asleep(real):
        def first_asleep(*args, **kwargs):
            patch.undo()
            successor()
            return real(*args, **kwargs)

        return first_asleep

    with pytest.MonkeyPatch.context() as patch:
        owner = {"read": EntryLog, "append": summary.SummaryFile, "unlink": Path}[step]
        patch.setattr(owner, step, asleep(getattr(owner, step)))
        with pytest.raises(FencedError):
            old.append(entry(2 * KEPT + 1))
    assert opened(tmp_path, generation=3)[1][-1:] == entry(10 * KEPT - 1)


def test_a_run_that_was_overtaken_cannot_open_the_log(tmp_path):
    opened(tmp_path, generation=2)
    with pytest.raises(FencedError):
        opened(tmp_path, generation=1)


def test_who_only_reads_sees_the_newest_generation(tmp_path):
    assert newest_entry(tmp_path, "it") is None
    assert EntryLog(tmp_path, "it").newest == 0
    filled(tmp_path, 3, generation=9)
    log, _ = opened(tmp_path, generation=10)
    log.append(entry(4))
    assert newest_entry(tmp_path, "it") == entry(4)
    assert read_entry(tmp_path, 2, "it") == entry(2)
    assert EntryLog(tmp_path, "it").newest == 4


def test_who_reads_while_a_start_takes_the_log_over_reads_that(tmp_path, monkeypatch):
    filled(tmp_path, 3, generation=1)
    real = EntryLog.read

    def read(self, number):
        monkeypatch.undo()
        opened(tmp_path, generation=2)
        return real(self, number)

    monkeypatch.setattr(EntryLog, "read", read)
    found = []
    assert EntryLog(tmp_path, "it", found.extend).newest == 3
    assert found == items(1, 2, 3)


# --- an epoch that is planned anew ------------------------------------------------------------


@pytest.mark.parametrize("count", [5, 2 * KEPT + 1])
def test_what_was_not_read_can_be_dropped_and_the_log_goes_on(tmp_path, count):
    filled(tmp_path, count, generation=1)
    assert drop_unread(tmp_path, count - 2, 2) == [count, count - 1]
    log, found = opened(tmp_path, generation=2)
    assert (log.newest, found) == (count - 2, items(*range(1, count - 1)))
    assert log.append(["anew"]) == count - 1


def test_where_all_was_read_nothing_is_dropped(tmp_path):
    filled(tmp_path, 3, generation=1)
    assert drop_unread(tmp_path, 3, 2) == []
    assert opened(tmp_path, generation=2)[0].newest == 3


def test_what_is_to_be_kept_stays_with_all_before_it(tmp_path):
    filled(tmp_path, 5, generation=1)
    kept = EntryLog(tmp_path, "the log").read(3)
    assert drop_unread(tmp_path, 0, 2, lambda entry: entry == kept) == [5, 4]
    assert opened(tmp_path, generation=2)[0].newest == 3


def test_a_planner_that_was_overtaken_adds_nothing_to_what_is_left(tmp_path):
    zombie = filled(tmp_path, 5, generation=1)
    drop_unread(tmp_path, 3, 2)
    with pytest.raises(FencedError):
        zombie.append(["late"])
    assert opened(tmp_path, generation=2)[0].newest == 3


def test_a_drop_that_is_cut_off_leaves_no_gap(tmp_path, monkeypatch):
    filled(tmp_path, 5, generation=1)
    real = Path.unlink
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda p, **_: real(p) if p.stem == "5" else 1 / 0)
        with pytest.raises(ZeroDivisionError):
            drop_unread(tmp_path, 1, 2)
    assert opened(tmp_path, generation=2)[0].newest == 4
    assert drop_unread(tmp_path, 1, 2) == [4, 3, 2]


# --- kills ------------------------------------------------------------------------------------


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
    patch.setattr(shutil, "rmtree", step(shutil.rmtree))
    for name in ("hardlink_to", "mkdir", "rename", "replace", "unlink"):
        patch.setattr(Path, name, step(getattr(Path, name)))


def tear(path, durable, share):
    """What was written behind the durable bytes is there in part, or as zeros."""
    data = path.read_bytes() if path.exists() else b""
    kept = durable + int((len(data) - durable) * share)
    if len(data) > kept:
        path.write_bytes(data[:kept] + (b"\0" * (len(data) - kept) if share > 0.5 else b""))


a_life = st.tuples(
    st.integers(0, 30),
    st.integers(0, 90),
    st.sampled_from([0, 0.3, 0.7, 0.99, 1]),
    st.booleans(),
)


@given(lives=st.lists(a_life, max_size=6))
def test_a_log_that_is_killed_again_and_again_is_the_log_that_was_written(lives):
    """Each life opens the log, appends entries, and may die at any step on the disk."""
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(entrylog, "KEPT", 3)
        patch.setattr(summary, "_WORTH_REWRITING", 100)
        folder, written, generation = Path(place) / "log", 0, 0
        for appends, steps, share, is_next in [*lives, (0, 10**6, 1, True)]:
            generation += is_next
            log = None
            with patch.context() as mortal:
                dies_after(mortal, steps)
                try:
                    log, found = opened(folder, generation)
                    assert written <= log.newest <= written + 1
                    assert found == items(*range(1, log.newest + 1))
                    written = log.newest
                    for _ in range(appends):
                        written = log.append(entry(log.newest + 1))
                except Killed:
                    pass
            if log is not None:
                tear(log._folder / "summary.jsonl", log._summary._bytes, share)
        newest = folder / str(generation)
        assert len(list(newest.glob("[0-9]*"))) <= 2 * 3 + 1 + len(lives)
        assert {path.name for path in folder.iterdir()} == {str(generation)}


@pytest.mark.parametrize("nested", [b'{"a":' * 100_000, b"[" * 100_000])
def test_a_line_that_is_nested_too_deeply_is_no_line(nested):
    assert summary._parsed(b"[1, " + nested + b'1, "sum"]\n') is None
