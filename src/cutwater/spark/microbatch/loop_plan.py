"""Plans the next epoch of a run with a loop that is cut at a log; `feedback` explains why."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from cutwater.spark.checkpoint.loop_progress import InputEpoch, inside_after
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.exchange.log_lines import inputs_in
from cutwater.spark.job.spec import Job
from cutwater.spark.storage.durable import damaged

__all__ = ["MAX_INPUT_EPOCHS", "Logs", "Planned", "planned"]

MAX_INPUT_EPOCHS = 8
"""How many input epochs may overlap: each adds its rows to every epoch."""


@dataclass(frozen=True)
class Planned:
    """What the next epoch does."""

    inside: tuple[InputEpoch, ...] = ()
    """The input epochs that are in the loop, oldest first."""
    iterating: frozenset[int] = frozenset()
    """The numbers of those that iterate: another round follows."""
    leaving: InputEpoch | None = None
    """The one whose results are released: the oldest, if it does not iterate."""
    reads_input: bool = True

    @property
    def remaining(self) -> list[InputEpoch]:
        """The input epochs in the loop after this epoch, without the one that it reads."""
        return [
            replace(each, round=each.round + 1) if each.number in self.iterating else each
            for each in self.inside
            if each is not self.leaving
        ]


def planned(job: Job) -> Planned:
    """What the next epoch does; the same for every source of a job."""
    if not job.loops.logs:
        return Planned()
    logs = Logs(job)
    inside = tuple(inside_after(logs.checkpoint, job.sources, logs.newest))
    iterating = logs.iterating()
    is_over = bool(inside) and inside[0].number not in iterating
    most = MAX_INPUT_EPOCHS if job.loops.overlaps else 1
    return Planned(inside, iterating, inside[0] if is_over else None, len(inside) < most)


@dataclass(frozen=True)
class Logs:
    """The logs of the loop that is cut, and how far they were read when an epoch was planned."""

    job: Job

    @cached_property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(Path(self.job.checkpoint))

    @cached_property
    def newest(self) -> int:
        """The newest epoch; the next one is planned."""
        return self.checkpoint.next_epoch() - 1

    def read_by(self, epoch: int, number: int) -> int:
        """The first epoch whose part of a log is not needed by an epoch or those before it."""
        found = self.checkpoint.offsets(epoch)[-len(self.job.loops.logs) :]
        offset = found[number] if found else None
        return int(offset["entry"]) if offset else 0

    def folder(self, name: str) -> Folder:
        found = self.job.sinks[name]
        assert isinstance(found, Folder)
        return found

    def files(self, name: str, epoch: int) -> list[str]:
        """The files that an epoch wrote to a log."""
        return sorted(map(str, self.folder(name).directory(epoch).glob("part-*")))

    def unread(self) -> list[int]:
        """The epochs that fed back something that no epoch has read yet."""
        name = self.job.loops.logs[0].name
        folder, read = self.folder(name), self.read_by(self.newest, 0)
        published = folder.published()
        newest = folder.newest_epoch(name, self.job.query_id)
        if newest is not None and newest >= read and newest not in published:
            gone = FileNotFoundError("it is missing, and no epoch has read it yet")
            raise damaged(folder.directory(newest), "the log of a loop", gone)
        return [epoch for epoch in published if epoch >= read]

    def iterating(self) -> frozenset[int]:
        """The input epochs of which something was fed back that no epoch has read yet."""
        name = self.job.loops.logs[0].name
        paths = (path for epoch in self.unread() for path in self.files(name, epoch))
        return frozenset(number for path in paths for number in inputs_in(path))

    def clean(self, name: str, needed: int) -> None:
        """Remove what epochs before `needed` wrote to a log."""
        folder = self.folder(name)
        for epoch in folder.published():
            if epoch < needed:
                shutil.rmtree(folder.directory(epoch), ignore_errors=True)
