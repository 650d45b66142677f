"""A loop that feeds back through a log: one round an epoch, in all buckets.

The plan is cut at the back edge (`flow.timely.cutting`). What is put into a log is a sink of the
epoch like any other (`connectors.files.sink`, in the checkpoint): staged by tasks, shown by one
rename when the epoch is published. What comes out of it is a source of the same query. So an epoch
is acyclic, and all that is known of crashes, replays and fencing holds for each.

An *input epoch* is worked on in several epochs of Spark's, one *phase* after the other:

=======  ======================================  ================================================
phase    reads                                   planned if, after the newest epoch n
=======  ======================================  ================================================
input    the sources, as ever; this is round 0   nothing goes round and all that left was shown
turn     what epoch n fed back, the next round   epoch n fed something back
leave    all that left the loop since the last   nothing was fed back, and it is not yet shown
         time; and what the sources completed
=======  ======================================  ================================================

What holds it together:

- *Sealed before it is planned.* Epoch n + 1 is planned when n is committed, and n publishes before
  it is committed. An epoch that is run again after a crash feeds back the same, and finds it there.
- *One decision.* Every source asks `phase_of`, which goes by Spark's offset log and by the folders
  that are published: both stand still while an epoch is planned. Where the log of a source and
  that of Spark differ after a crash, the next start removes what Spark's does not name.
- *The order of decision 27.* What is fed back keeps the order of its cause: an event's place among
  all that its round fed back stands for that order, as in `operators.loop`. Places are found when
  the log is read. What leaves is ordered by its round, and in it as it was made.
- *Input epochs do not overlap.* Sources are held while the loop turns, so a step of the body meets
  events in the order (input epoch, round, order of the cause), whatever it does with them.
- *Caught up means empty.* Spark's ``availableNow`` ends when no source has news. The logs are not
  frozen as sources are: they have news until the loop is empty and all that left is shown.
- *The end of the input* is an input epoch too. What is before the loop ends in the epoch of its
  input, what is behind it in the one that shows the last that left; a body has no end of its own.
- *Nobody else plans.* A run that was overtaken may neither read a log nor write to it: planners are
  fenced by the generation of the checkpoint, sinks by their ledgers.
- *Cleaned by the frontier.* What an epoch before the newest has read is never read again, not even
  after a power loss: it is removed when the next round is planned.
- *No watermark inside.* A body that goes by times is not cut. Behind the loop a watermark is that
  of the sources at the input epoch, told with what left, so nothing of it comes later.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from cutwater.errors import RunError
from cutwater.flow import Flow
from cutwater.flow.steps import FromLog
from cutwater.flow.timely.cutting import log_name, loop_to_cut
from cutwater.operators.loop import bound_reached
from cutwater.ordering import order_bytes
from cutwater.spark.checkpoint.offset_log import LOG
from cutwater.spark.checkpoint.power_loss import SparkFiles
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.side_outputs import side_output_folder
from cutwater.spark.connectors.base.sink import Sink
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.exchange.envelope import (
    BEHIND,
    END,
    EVERYONE,
    ROW_SCHEMA,
    Outbox,
    record_batches,
)
from cutwater.spark.exchange.log_lines import orders_in
from cutwater.spark.exchange.router import Sender
from cutwater.spark.job.column_requirements import least_and_greatest
from cutwater.spark.job.spec import Job, load_job, speaking
from cutwater.spark.microbatch.fencing import refuse_overtaken
from cutwater.spark.operators.reading import notices
from cutwater.spark.stopping import StopRequest
from cutwater.spark.storage.durable import damaged
from cutwater.spark.storage.entry_log import read_entry

__all__ = ["LogSource", "Phase", "log_sinks", "phase_of"]

Phase = Literal["input", "turn", "leave"]
_LINES = 10_000
"""So many events of a log are worked on together."""


@dataclass(frozen=True)
class _Logs:
    """The logs of the loop that is cut, and how far they were read when an epoch was planned."""

    job: Job

    @cached_property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(Path(self.job.checkpoint))

    @cached_property
    def newest(self) -> int:
        """The newest epoch; planning goes on behind it."""
        return self.checkpoint.next_epoch() - 1

    def read_by(self, epoch: int) -> dict[str, int]:
        """For each log the first epoch of which an epoch, and those before it, read nothing."""
        logs = self.job.logs
        offsets = self.checkpoint.offsets(epoch)[-len(logs) :] or [None] * len(logs)
        return {
            log.name: offset["entry"] if offset else 0
            for log, offset in zip(logs, offsets, strict=True)
        }

    @cached_property
    def read(self) -> dict[str, int]:
        return self.read_by(self.newest)

    def folder(self, name: str) -> Folder:
        found = self.job.sinks[name]
        assert isinstance(found, Folder)
        return found

    def unread(self, name: str) -> list[int]:
        """The epochs that put something into a log that no epoch has read."""
        folder = self.folder(name)
        published = folder.published()
        newest = folder.newest_epoch(name, self.job.query_id)
        if newest is not None and newest >= self.read[name] and newest not in published:
            gone = FileNotFoundError("it is gone, and no epoch has read it yet")
            raise damaged(folder.directory(newest), "the log of a loop", gone)
        return [epoch for epoch in published if epoch >= self.read[name]]

    def clean(self, name: str) -> None:
        """Remove what no epoch reads again: after a power loss the newest is run once more."""
        needed = self.read_by(self.newest - 1)[name]
        folder = self.folder(name)
        for epoch in folder.published():
            if epoch < needed:
                shutil.rmtree(folder.directory(epoch), ignore_errors=True)


def phase_of(job: Job) -> Phase:
    """What the next epoch is for; every source of a job says the same."""
    if not job.logs:
        return "input"
    logs = _Logs(job)
    again, left = (log.name for log in job.logs)
    if logs.unread(again):
        return "turn"
    return "input" if logs.read[left] > logs.newest else "leave"


def log_sinks(flow: Flow, checkpoint: Path) -> dict[str, Sink]:
    """The logs of a loop that feeds back through one; none if no loop does."""
    loop = loop_to_cut(flow.steps)
    names = [log_name(loop.name, is_again) for is_again in (True, False)] if loop else []
    return {name: Folder(str(checkpoint / side_output_folder(name))) for name in names}


class LogSource(DataSource):
    """What comes out of a log of a job; a class of its own is made for each, which carries it."""

    job: bytes
    log: str

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    @classmethod
    def of(cls, job: bytes, log: str, number: int) -> type[LogSource]:
        """The data source of one log of a job."""
        return type(f"cutwater_log_{number}", (cls,), {"job": job, "log": log})

    def schema(self) -> StructType:
        return ROW_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _Reader(self.job, self.log)


@dataclass
class _Part(InputPartition):
    epoch: int = -1
    path: str = ""
    """A file of what an epoch put into the log."""
    beside: tuple[str, ...] = ()
    """All files of that epoch, where places among all its events are asked for."""
    mark: bytes | None = None
    """What is complete behind the loop, encoded; None: nothing new."""
    is_end: bool = False
    """Does nothing more leave the loop?"""


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans in one long-lived process; reads in the workers."""

    def __init__(self, job: bytes, log: str) -> None:
        self._job = job
        self._name = log
        self._files: SparkFiles | None = None

    def _open(self) -> tuple[Job, FromLog]:
        job = load_job(self._job)
        return job, next(log for log in job.logs if log.name == self._name)

    def initialOffset(self) -> dict[str, Any]:
        return {"entry": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing is frozen: a run has caught up when its loop is empty."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with speaking():
            job, log = self._open()
            if not job.is_ending and StopRequest(job.checkpoint).is_made():
                return start
            phase = phase_of(job)
            if phase != "input":
                refuse_overtaken(job)
            if phase == "turn" and log.is_again:
                return self._turned(job, log, start)
            if phase == "leave" and not log.is_again:
                return self._left(job, log, start)
            return start

    def _turned(self, job: Job, log: FromLog, start: dict[str, Any]) -> dict[str, Any]:
        """The next round; rounds are counted from when the loop was empty last."""
        logs = _Logs(job)
        since = logs.read[job.logs[1].name]
        done = start.get("round", 0) if start.get("since") == since else 0
        if done + 1 == log.max_rounds:
            raise _too_many_rounds(job, log, logs.unread(log.name)[-1])
        logs.clean(log.name)
        return {"entry": logs.newest + 1, "round": done + 1, "since": since}

    def _left(self, job: Job, log: FromLog, start: dict[str, Any]) -> dict[str, Any]:
        logs = _Logs(job)
        logs.clean(log.name)
        mark = _completed(job, log, logs)
        said = base64.b64encode(mark).decode() if mark is not None else start.get("mark")
        # this epoch itself puts nothing into a log, so it counts as read
        offset: dict[str, Any] = {"entry": logs.newest + 2}
        if said is not None:
            offset["mark"] = said
        return offset | ({"end": True} if logs.checkpoint.is_ending() else {})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        with speaking():
            job, log = self._open()
            self._sync(job)
            folder = _Logs(job).folder(log.name)
            parts = [
                _Part(epoch, path, tuple(paths) if log.is_again else ())
                for epoch in folder.published()
                if start["entry"] <= epoch < end["entry"]
                for paths in [sorted(map(str, folder.directory(epoch).glob("part-*")))]
                for path in paths
            ]
            if end.get("mark") != start.get("mark"):
                parts.append(_Part(mark=base64.b64decode(end["mark"])))
            if end.get("end") and not start.get("end"):
                parts.append(_Part(is_end=True))
            return list(parts)

    def _sync(self, job: Job) -> None:
        """The offsets of the epoch are written and no task has run: make it durable, once."""
        if self._files is None:
            self._files = SparkFiles(Path(job.checkpoint))
        self._files.sync()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        with speaking():
            job, log = self._open()
            if partition.path:
                yield from _rows(job, log, partition)
            yield from record_batches(notices(job, log.name, partition.mark))
            if partition.is_end:
                ends = [(label, EVERYONE, END, BEHIND) for label in job.labels if job.levels]
                yield from record_batches(ends)


def _rows(job: Job, log: FromLog, part: _Part) -> Iterator[pa.RecordBatch]:
    outbox = Outbox(job.labels)
    sender = Sender(job, job.source_segment(log.name), outbox)
    lines = _lines_of(part.path)
    rank = len(job.sources)
    places: dict[bytes, int] = {}
    if log.is_again and sender.minds_order:
        orders = sorted(order for path in part.beside for order in orders_in(_lines_of(path)))
        places = {order: place for place, order in enumerate(orders)}
    before = order_bytes((rank, part.epoch))
    for start in range(0, len(lines), _LINES):
        batch = job.log_lines[log.name].read(lines[start : start + _LINES], job.home)
        if not sender.minds_order:
            orders = []
        elif log.is_again:
            orders = [order_bytes((rank, places[order])) for order in batch.orders]
        else:
            orders = [before + order for order in batch.orders]
        sender.through(replace(batch, orders=orders))
        yield from record_batches(outbox.ready())
    yield from record_batches(outbox.take())


def _lines_of(path: str) -> list[bytes]:
    return Path(path).read_bytes().splitlines()


def _completed(job: Job, log: FromLog, logs: _Logs) -> bytes | None:
    """What all sources before the loop have completed with what was read; encoded."""
    if log.name not in job.needs.telling:
        return None
    entries = logs.checkpoint.entries_read(list(job.sources))
    marks: dict[str, Any] = {}
    for name in log.origins:
        kept = read_entry(Path(job.checkpoint) / "sources" / name, entries.get(name, 0), LOG)
        clock = job.clock_of(name)
        mark = clock.completed(Chunk.of_json(kept[-1]).newest_after) if clock and kept else None
        if mark is None:
            return None
        marks[name] = mark
    return job.mark_codecs[log.name].encode(least_and_greatest(marks, f"'{log.loop}' reads")[0])


def _too_many_rounds(job: Job, log: FromLog, epoch: int) -> RunError:
    folder = _Logs(job).folder(log.name)
    paths = sorted(map(str, folder.directory(epoch).glob("part-*")))
    lines = [line for path in paths for line in _lines_of(path)]
    first = job.log_lines[log.name].read([min(lines, key=lambda line: orders_in([line]))], 0)
    title = f"iterate '{log.loop}' ({log.where})"
    time = first.times[0] if first.times else None
    assert log.max_rounds is not None
    return RunError(bound_reached(title, log.max_rounds, len(lines), first.values[0], time))
