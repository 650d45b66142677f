"""Entries that nobody has read are taken back, the newest first."""

from pathlib import Path

import pytest

from cutwater.spark.storage.entry_log import EntryLog
from cutwater.spark.storage.unread_entries import drop_entries_after


@pytest.fixture
def log(tmp_path):
    made = EntryLog(tmp_path, "the log")
    for entry in range(1, 6):
        made.append([entry])
    return tmp_path


def test_what_comes_after_is_gone_and_the_log_goes_on(log):
    assert drop_entries_after(log, 3) == [5, 4]
    again = EntryLog(log, "the log")
    assert again.newest == 3
    assert again.append(["anew"]) == 4
    assert again.read(4) == ["anew"]


def test_nothing_comes_after_the_newest(log):
    assert drop_entries_after(log, 5) == []
    assert EntryLog(log, "the log").newest == 5


def test_a_crash_leaves_no_gap(log, monkeypatch):
    real = Path.unlink
    monkeypatch.setattr(Path, "unlink", lambda path: (path.stem == "5" and real(path)) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        drop_entries_after(log, 1)
    monkeypatch.undo()
    assert EntryLog(log, "the log").newest == 4
