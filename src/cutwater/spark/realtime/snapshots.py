"""Snapshots of the states of tasks: what changed since the one before, at common ticks.

::

    snapshots/
      3.1/                    task 1 of level 3
        500-1500.full         its full state at tick 500, unchanged up to tick 1500
        2000-2000.500.delta   what changed since the file that begins at tick 500

A start resumes from the newest tick that every task has (rule 5). Files of later ticks are void
then: ticks that no sink released may be planned again, so the next run may reach other states.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import xxhash

from cutwater.errors import Problem, RefusedError
from cutwater.spark.storage.durable import make_folder, sync_folder, write_file

__all__ = [
    "SIDE_OUTPUT_SUFFIX",
    "Changes",
    "Snapshots",
    "Stored",
    "TaskSnapshots",
    "lacks_snapshots",
    "newest_common",
    "read_changes",
    "read_summed",
    "side_output_tick",
    "write_summed",
]

SIDE_OUTPUT_SUFFIX = ".side-output"
"""The suffix of files with rows that are released with a snapshot: see `side_outputs`."""

Changes = dict[int, dict[int, bytes | None]]
"""For each bucket, by its label, the entries of its state that changed; None: removed."""

_NAME = re.compile(r"(-?\d+)-(-?\d+)(?:\.(-?\d+))?\.(full|delta)")
_COPIES = 20
"""How often files are copied while their task, a zombie, replaces some: each time it stores."""
_NOTHING = -1
"""What the first delta of a task follows."""
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Changes).decode


@dataclass(frozen=True, order=True)
class Stored:
    """A file of a task: its state from one tick to another."""

    tick: int
    through: int
    is_full: bool
    after: int | None = None
    """Where the file begins whose changes it follows, -1 for none; None: it does not say."""

    @property
    def name(self) -> str:
        after = "" if self.after is None else f".{self.after}"
        return f"{self.tick}-{self.through}{after}.{'full' if self.is_full else 'delta'}"

    def is_at(self, tick: int) -> bool:
        """Is it the state of a tick?"""
        return self.tick <= tick <= self.through

    @staticmethod
    def of(name: str) -> Stored | None:
        """The file with this name; None if it is not the name of a snapshot."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        after = None if found[3] is None else int(found[3])
        return Stored(int(found[1]), int(found[2]), found[4] == "full", after)


def side_output_tick(path: Path) -> int:
    """The snapshot with which the rows of a file are released."""
    return int(path.name.removesuffix(SIDE_OUTPUT_SUFFIX))


def newest_common(tasks: list[list[Stored]]) -> int:
    """The newest tick at which every task has its state; -1 if there is none.

    >>> newest_common([[Stored(0, 5, True), Stored(8, 8, False)], [Stored(0, 9, True)]])
    8
    >>> newest_common([[Stored(0, 5, True), Stored(8, 8, False)], [Stored(0, 7, True)]])
    5
    """
    tick = min((max((each.through for each in task), default=-1) for task in tasks), default=-1)
    while tick >= 0:
        nearest = [max((t.through for t in task if t.tick <= tick), default=-1) for task in tasks]
        lower = min(min(through, tick) for through in nearest)
        if lower == tick:
            return tick
        tick = lower
    return -1


class TaskSnapshots:
    """What one task has stored; written by that task alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def stored(self) -> list[Stored]:
        """The stored files, in order."""
        paths = self.folder.iterdir() if self.folder.is_dir() else iter(())
        return sorted(found for found in (Stored.of(path.name) for path in paths) if found)

    def drop_after(self, tick: int) -> None:
        """Remove what is newer than a tick: it is void (rule 5).

        Durably, snapshots first: after a power loss removed files may be back one by one, and a
        snapshot that is back without the rows that are published with it would lose them.
        """
        for each in self.stored():
            if each.tick <= tick < each.through:
                self._rename(each, replace(each, through=tick))
        self._remove([self.folder / each.name for each in self.stored() if each.tick > tick])
        self._remove([p for p in self.side_output_files() if side_output_tick(p) > tick])

    def _remove(self, paths: list[Path]) -> None:
        for path in paths:
            path.unlink()
        if paths:
            sync_folder(self.folder)

    def side_output_files(self) -> list[Path]:
        """The files of rows that wait to be published."""
        return list(self.folder.glob(f"*{SIDE_OUTPUT_SUFFIX}"))

    def load(self, tick: int | None = None) -> Changes:
        """The newest stored state, or that at a tick that has one."""
        state: Changes = {}
        for each in self.needed(tick):
            for label, changes in read_changes(self.folder / each.name).items():
                bucket = state.setdefault(label, {})
                for number, data in changes.items():
                    if data is None:
                        bucket.pop(number, None)
                    else:
                        bucket[number] = data
        return state

    def store(self, tick: int, changes: Changes, *, is_full: bool) -> None:
        """Store the state at a tick, durably: all of it, or what changed since the last one.

        An unchanged state lasts from the file before to this tick, unless rows wait to be published
        with this one: a start at a tick in between would neither have them nor make them again.
        """
        make_folder(self.folder)
        found = self.stored()
        has_rows = (self.folder / f"{tick}{SIDE_OUTPUT_SUFFIX}").exists()
        if not changes and found and not is_full and not has_rows:
            self._rename(found[-1], replace(found[-1], through=tick))
            return
        after = None if is_full else found[-1].tick if found else _NOTHING
        write_summed(self.folder / Stored(tick, tick, is_full, after).name, _pack(changes))

    def drop_before(self, common: int) -> None:
        """Remove what a start that resumes from this tick, or from a later one, does not need."""
        found = self.stored()
        fulls = [each for each in found if each.is_full and each.tick <= common]
        for each in found:
            if fulls and each < fulls[-1]:
                (self.folder / each.name).unlink()

    def needed(self, tick: int | None = None) -> list[Stored]:
        """The last full snapshot and its deltas up to a tick; refused if a file is missing."""
        found = [each for each in self.stored() if tick is None or each.tick <= tick]
        start = max((n for n, each in enumerate(found) if each.is_full), default=0)
        before = _NOTHING
        for each in found[start:]:
            if not each.is_full and each.after not in (None, before):
                raise RefusedError(_gap(self.folder, before, each))
            before = each.tick
        return found[start:]

    def copy_to(self, folder: Path) -> None:
        """Link all files into another folder; a zombie may rename and remove some meanwhile."""
        for attempt in range(_COPIES):
            shutil.rmtree(folder, ignore_errors=True)
            make_folder(folder)
            try:
                for path in self._paths():
                    (folder / path.name).hardlink_to(path)
                # Stored before their snapshot, so those of every snapshot above are there.
                for path in self.side_output_files():
                    (folder / path.name).hardlink_to(path)
            except FileNotFoundError:
                if attempt == _COPIES - 1:
                    raise
            else:
                break
        sync_folder(folder)

    def _paths(self) -> list[Path]:
        return [self.folder / each.name for each in self.stored()]

    def _rename(self, before: Stored, after: Stored) -> None:
        (self.folder / before.name).rename(self.folder / after.name)
        sync_folder(self.folder)


class Snapshots:
    """The snapshots of all tasks of a generation."""

    def __init__(self, folder: Path, levels: int, partitions: int) -> None:
        self.folder, self._levels, self._partitions = folder, levels, partitions
        self._task_ids = [(level, p) for level in range(levels) for p in range(partitions)]

    def of(self, level: int, partition: int) -> TaskSnapshots:
        """The snapshots of one task."""
        return TaskSnapshots(self.folder / f"{level}.{partition}")

    def common(self) -> int:
        """The newest tick that every task has stored; -1 if there is none."""
        return newest_common([self.of(*task).stored() for task in self._task_ids])

    def has(self, tick: int) -> bool:
        """Has every task the state of a tick?"""
        return all(any(s.is_at(tick) for s in self.of(*task).stored()) for task in self._task_ids)

    def tasks(self) -> Iterator[TaskSnapshots]:
        """The snapshots of each task."""
        return (self.of(*task) for task in self._task_ids)

    def all_stored(self) -> Iterator[Stored]:
        """The files of all tasks."""
        for task in self._task_ids:
            yield from self.of(*task).stored()

    def size(self) -> int:
        """The size of all files in bytes; files may be added and removed meanwhile."""
        total = 0
        for path in self.folder.glob("*/*"):
            with suppress(FileNotFoundError):
                total += path.stat().st_size
        return total

    def copied_to(self, folder: Path) -> Snapshots:
        """Copy all files to another generation, which resumes from them, and return the copy."""
        copy = Snapshots(folder, self._levels, self._partitions)
        for mine, other in zip(self.tasks(), copy.tasks(), strict=True):
            mine.copy_to(other.folder)
        return copy


def read_changes(path: Path) -> Changes:
    """The changes in a file; refused if it is damaged."""
    return _unpack(read_summed(path))


def write_summed(path: Path, data: bytes) -> None:
    """Write a file with a checksum, durably and atomically."""
    write_file(path, xxhash.xxh64_digest(data) + data)


def read_summed(path: Path) -> bytes:
    """What `write_summed` wrote; refused if it does not match its checksum."""
    data = path.read_bytes()
    total, body = data[:8], data[8:]
    if total != xxhash.xxh64_digest(body):
        message = f"{path} does not match its checksum"
        raise RefusedError(Problem("damaged-snapshot", message, _RESTORE))
    return body


def lacks_snapshots(folder: Path, common: int) -> Problem:
    """The problem of snapshots that end before the plan begins."""
    last = f"the newest state that all tasks have is that of tick {common}"
    found = last if common >= 0 else "not all tasks have a state"
    message = f"files are missing in {folder}: {found}, and the plan begins later"
    return Problem("damaged-snapshot", message, _RESTORE)


def _gap(folder: Path, before: int, found: Stored) -> Problem:
    text = (
        f"the file of tick {found.after} is missing in {folder}: {found.name} holds what changed "
        "since then"
    )
    if before != _NOTHING:
        text += f", and the file before it is that of tick {before}"
    return Problem("damaged-snapshot", text, _RESTORE)


_RESTORE = "restore the checkpoint from a backup, or start with a new one and an empty output"
