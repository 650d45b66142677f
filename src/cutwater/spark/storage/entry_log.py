"""A durable log of numbered entries, which belongs to one generation of runs at a time.

::

    log/
      12/                    generation 12 of the runs; the highest counts
        summary.jsonl        what is kept of the entries up to 7032
        7033.json ...        the newest entries, each written at once and whole

A start takes what it needs of the generation before into a folder of its own, which appears by one
rename. A process of an earlier run that wakes up later writes into its own folder, which is
no longer read, or finds that it is gone: it can neither append to the log of its successor nor
compact it.

Within a generation old entries are compacted: first the summary is durable, then their files are
removed.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cutwater.errors import FencedError, InputError, Problem
from cutwater.spark.storage.durable import make_folder, read_json, sync_folder, write_json
from cutwater.spark.storage.summary import SummaryFile

__all__ = ["KEPT", "EntryLog", "drop_unread", "newest_entry", "newest_generation", "read_entry"]

KEPT = 32
"""The least number of newest entries that are not compacted; Spark replays the last one or two."""


class EntryLog:
    """A log in a folder. Entries are lists and are numbered from 1.

    With a generation it is opened for writing, by one process at a time; else only for reading.
    """

    def __init__(
        self,
        folder: Path,
        what: str,
        note: Callable[[list[Any]], None] = lambda _entry: None,
        *,
        generation: int | None = None,
        condense: Callable[[list[Any]], list[Any]] = list,
    ) -> None:
        """Open a log; `note` is given the summary of old entries, then each newer one, in order.

        `condense` reduces the items of many entries to those that `note` needs.
        """
        self._what = what
        self._condense = condense
        self._generation = generation
        self._root = folder
        if generation is not None:
            _claim(folder, generation, condense)
        for entry in self._opened():
            note(entry)

    def _opened(self) -> list[list[Any]]:
        """All entries of the newest generation, even if a start creates a newer one meanwhile."""
        while True:
            generation = newest_generation(self._root)
            try:
                return self._open(self._root / str(generation or 0))
            except InputError:
                if newest_generation(self._root) == generation:
                    raise

    def _open(self, folder: Path) -> list[list[Any]]:
        self._folder = folder
        numbers = _numbers(folder)  # before the summary: what is compacted meanwhile is there
        self._oldest_file = min(numbers, default=1)
        self._summary = SummaryFile(folder / _SUMMARY)
        lines = list(self._summary.read())
        self.newest = max([*numbers, self._summary.through])
        """The number of the newest entry; 0 if there is none."""
        newer = range(self._summary.through + 1, self.newest + 1)
        missing = set(newer).difference(numbers)
        if missing:
            raise InputError(self._missing(min(missing)))
        return lines + [self.read(number) for number in newer]

    def read(self, number: int) -> list[Any]:
        """One of the newest entries."""
        entry: list[Any] | None = read_json(self._file(number), self._what)
        if entry is None:
            raise InputError(self._missing(number))
        return entry

    def append(self, entry: list[Any]) -> int:
        """Write the next entry, durably, unless another process has; returns its number."""
        path = self._file(self.newest + 1)
        try:
            write_json(path, entry, is_new=True)
            self.newest += 1
            if self.newest - self._summary.through > 2 * KEPT:
                self._compact(self.newest - KEPT)
        except FileExistsError:
            raise _written_by_another(path) from None
        except (FileNotFoundError, InputError):  # its folder is gone
            _refuse_overtaken(self._root, self._generation)
            raise
        return self.newest

    def _compact(self, until: int) -> None:
        """Compact entries: first they are in the summary, then their files are removed."""
        entries = range(self._summary.through + 1, until + 1)
        items = [item for number in entries for item in self.read(number)]
        if self._summary.is_long:
            before = [item for line in self._summary.read() for item in line]
            self._summary.rewrite(until, self._condense([*before, *items]))
        else:
            self._summary.append(until, self._condense(items))
        for number in range(self._oldest_file, until + 1):
            self._file(number).unlink(missing_ok=True)
        self._oldest_file = until + 1

    def _file(self, number: int) -> Path:
        return self._folder / f"{number}.json"

    def _missing(self, number: int) -> Problem:
        return Problem(
            "missing-entry",
            f"{self._file(number)} is missing; the checkpoint says it was read",
            "restore the whole checkpoint from a backup",
        )


_SUMMARY = "summary.jsonl"


def drop_unread(
    folder: Path,
    read: int,
    generation: int,
    is_kept: Callable[[list[Any]], bool] = lambda _entry: False,
) -> list[int]:
    """Delete the entries after those that were read, durably, the newest first; returns them.

    They end before one that is to be kept. The generation takes the log over first: a planner that
    was presumed dead could append to the rest, and leave a gap.
    """
    _claim(folder, generation, list)
    own = folder / str(generation)
    dropped: list[int] = []
    for number in sorted(_numbers(own), reverse=True):
        if number <= read or is_kept(read_json(own / f"{number}.json", "an entry of a log") or []):
            break
        (own / f"{number}.json").unlink()
        dropped.append(number)
    if dropped:
        sync_folder(own)
    return dropped


def read_entry(folder: Path, number: int, what: str) -> list[Any] | None:
    """One of the newest entries of a log; None if it is missing or damaged."""
    found: list[Any] | None = read_json(
        folder / str(newest_generation(folder) or 0) / f"{number}.json", what
    )
    return found


def newest_entry(folder: Path, what: str) -> list[Any] | None:
    """The newest entry of a log to which another process may be writing; None if there is none."""
    newest = max(_numbers(folder / str(newest_generation(folder) or 0)), default=None)
    return None if newest is None else read_entry(folder, newest, what)


def newest_generation(folder: Path) -> int | None:
    """The generation that a log belongs to; None if it was never opened for writing."""
    return max(_generations(folder), default=None)


def _claim(folder: Path, generation: int, condense: Callable[[list[Any]], list[Any]]) -> None:
    """Take the log over for a generation, with what is needed of the one before."""
    make_folder(folder)
    _refuse_overtaken(folder, generation)
    before, own = newest_generation(folder), folder / str(generation)
    if before != generation:
        fresh = folder / f".{generation}.{uuid.uuid4().hex}.new"
        fresh.mkdir(mode=0o700)
        if before is not None:
            _inherit(folder / str(before), fresh, condense)
        sync_folder(fresh)
        fresh.rename(own)
        sync_folder(folder)
    for name in [str(old) for old in _generations(folder) if old < generation]:
        shutil.rmtree(folder / name, ignore_errors=True)
    for orphan in folder.glob(".*.new"):
        shutil.rmtree(orphan, ignore_errors=True)


def _inherit(old: Path, fresh: Path, condense: Callable[[list[Any]], list[Any]]) -> None:
    """Copy a log: its summary as one line, and its newest entries, which never change."""
    summary = SummaryFile(old / _SUMMARY)
    items = [item for line in summary.read() for item in line]
    if summary.through:
        SummaryFile(fresh / _SUMMARY).rewrite(summary.through, condense(items))
    for number in sorted(_numbers(old)):
        if number > summary.through:
            (fresh / f"{number}.json").hardlink_to(old / f"{number}.json")


def _refuse_overtaken(folder: Path, generation: int | None) -> None:
    newest = newest_generation(folder)
    if generation is not None and newest is not None and newest > generation:
        raise FencedError.because(
            f"generation {newest} has taken the log {folder} over from generation {generation}"
        )


def _written_by_another(path: Path) -> FencedError:
    return FencedError.because(
        f"{path} was written meanwhile by another run with this checkpoint",
        "if another run is active, stop one of the two; otherwise run it again: it continues from "
        "there",
    )


def _generations(folder: Path) -> set[int]:
    return _as_numbers(path.name for path in folder.iterdir()) if folder.is_dir() else set()


def _numbers(folder: Path) -> set[int]:
    return _as_numbers(path.stem for path in folder.glob("*.json"))


def _as_numbers(names: Iterable[str]) -> set[int]:
    return {int(name) for name in names if name.isdigit()}
