"""A loop that feeds back through a log: one round per epoch, in all buckets.

The plan is cut at the back edge (`flow.timely.cutting`). The log is a sink of the epoch like any
other (`connectors.files.sink`, in the checkpoint): tasks stage its rows, and one rename publishes
them with the epoch. Reading the log is a source of the same query. So an epoch is acyclic,
and crash recovery, replay and fencing work as they do for any epoch.

An *input epoch* is what one Spark epoch reads from the sources, and has its number. It is in the
loop until it has left. An epoch may do three things, each for different input epochs:

=======  ======================================  ================================================
         reads                                   planned if, after the newest epoch n
=======  ======================================  ================================================
input    the sources, as always; this is round 0 there is room in the loop for one more
round    what epoch n fed back: the next round   epoch n fed something back
         of each input epoch in it
leave    all that left of the oldest input       epoch n fed back nothing of it
         epoch; and what the sources completed
=======  ======================================  ================================================

The invariants (`semantics.protocols.loop_log` is a model of them, explored with crashes):

- *Sealed before it is planned.* Epoch n + 1 is planned when n is committed, and n publishes before
  it is committed. An epoch that is replayed after a crash feeds back the same rows, and finds them
  published.
- *One decision.* Every source asks `planned`, which depends only on Spark's offset log and on the
  published folders: neither changes while an epoch is planned. Where the log of a source and that
  of Spark differ after a crash, the next start removes the entries that Spark's does not refer to.
- *Order by cause.* What is fed back keeps the order of its cause: an event's rank among
  all that its round fed back represents that order, as in `operators.loop`. Ranks are computed when
  the log is read. What leaves is ordered by its round, and within it by when it was made.
- *Input epochs overlap only if that is unobservable.* If the body keeps state from one input epoch
  to the next, there is room for one: t + 1 must find the state that t leaves behind, and at a step
  on the cycle any round of t may still change it, so no frontier lets t + 1 in before t is over.
  That functions commute is not enough: a running count commutes, and emits other numbers. If the
  body keeps no state, or each input epoch begins with states of its own (``state_per_epoch``), the
  overlap is unobservable, and there is room for `MAX_INPUT_EPOCHS`. Rows in the loop carry the
  number of their input epoch, and a bucket processes one after the other, each with its own states
  (`state.input_states`).
- *They leave in order, one per epoch.* So whatever reads the loop, with any state, receives whole
  input epochs, each with a barrier of its own. One that is over before an older one waits.
- *Caught up means empty.* Spark's ``availableNow`` ends when no source has new input. The logs are
  not frozen as sources are: they have new input until the loop is empty and its results are out.
- *The end of the input* is an input epoch too. Steps upstream of the loop end in the epoch that
  reads it, steps downstream in the epoch of the last results; a body has no end of its own.
- *No zombie plans.* A run that was overtaken may neither read a log nor write to it: planners are
  fenced by the generation of the checkpoint, sinks by their ledgers.
- *Cleaned by the frontier.* What no input epoch in the loop can need is never read again, not even
  after a power loss: it is removed as the next epoch is planned. States of an input epoch are
  removed in the epoch in which it leaves.
- *No watermark inside.* A body that depends on times is not cut. Downstream of the loop, a
  watermark is that of the sources at the input epoch, sent with what left, so nothing of it comes
  later.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
from cutwater.spark.checkpoint.fencing import refuse_overtaken
from cutwater.spark.checkpoint.loop_progress import PLANNED, InputEpoch, offset_of_left
from cutwater.spark.checkpoint.offset_log import LOG
from cutwater.spark.checkpoint.power_loss import SparkFiles
from cutwater.spark.connectors.base.side_outputs import side_output_folder
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.exchange.envelope import (
    BEHIND,
    END,
    EVERYONE,
    OVER,
    ROW_SCHEMA,
    ShuffleWriter,
    pack_number,
    record_batches,
)
from cutwater.spark.exchange.log_lines import inputs_in, lines_by_input, orders_in
from cutwater.spark.exchange.router import Sender
from cutwater.spark.job.error_boundary import error_boundary
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import load_job
from cutwater.spark.microbatch.loop_plan import Logs, Planned, planned
from cutwater.spark.operators.reading import control_rows
from cutwater.spark.stopping import StopRequest
from cutwater.spark.storage.entry_log import read_entry

__all__ = ["LogSource", "log_sinks"]

_LINES = 10_000
"""How many events of a log are processed together."""


def log_sinks(flow: Flow, checkpoint: Path) -> dict[str, SinkConnector]:
    """The logs of a loop that feeds back through a log; empty if there is no such loop."""
    loop = loop_to_cut(flow.steps)
    names = [log_name(loop.name, is_again) for is_again in (True, False)] if loop else []
    return {name: Folder(str(checkpoint / side_output_folder(name))) for name in names}


class LogSource(DataSource):
    """The data source that reads a log of a job; a subclass per log carries the job."""

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
    """A file that an epoch wrote to the log."""
    epoch_files: tuple[str, ...] = ()
    """All files of that epoch, where an event's rank among all its events is needed."""
    leaves: int = -1
    """The input epoch that leaves the loop, if one does."""
    watermark: bytes | None = None
    """The watermark downstream of the loop, encoded; None: it has not moved."""
    control: tuple[tuple[int, bytes], ...] = ()
    """Kind and body of further control rows for every bucket."""


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans in one long-lived process; reads in the workers."""

    def __init__(self, job: bytes, log: str) -> None:
        self._job = job
        self._name = log
        self._files: SparkFiles | None = None

    def _open(self) -> tuple[Job, FromLog]:
        job = load_job(self._job)
        return job, next(log for log in job.loops.logs if log.name == self._name)

    def initialOffset(self) -> dict[str, Any]:
        return {"entry": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Freeze nothing: a run has caught up when its loop is empty."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with error_boundary():
            job, log = self._open()
            if not job.is_ending and StopRequest(job.checkpoint).is_made():
                return start
            plan = planned(job)
            if not plan.inside:
                return start
            refuse_overtaken(job)
            if log.is_again:
                return self._next_round(job, log, start, plan)
            return self._left(job, log, start, plan)

    def _next_round(self, job: Job, log: FromLog, start: Any, plan: Planned) -> dict[str, Any]:
        """Plan the next round of all input epochs that iterate."""
        if not plan.iterating:
            return dict(start)
        _refuse_endless(job, log, plan)
        logs = Logs(job)
        # Keep what the newest epoch read: after a power loss it is replayed.
        logs.clean(log.name, logs.read_by(logs.newest - 1, 0))
        return {"entry": logs.newest + 1}

    def _left(self, job: Job, log: FromLog, start: Any, plan: Planned) -> dict[str, Any]:
        logs = Logs(job)
        logs.clean(log.name, logs.read_by(logs.newest, 1))
        offset = offset_of_left(logs.newest + 1, plan.remaining, plan.inside[0].number)
        unchanged = {
            name: start[name] for name in ("released", "watermark", "end") if name in start
        }
        if plan.leaving is None:
            return offset | unchanged
        leaving = plan.leaving
        offset |= unchanged | {"leaves": leaving.number, "released": leaving.entries}
        watermark = _completed(job, log, leaving)
        if watermark is not None:
            offset["watermark"] = base64.b64encode(watermark).decode()
        return offset | ({"end": True} if leaving.is_end else {})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        with error_boundary():
            job, log = self._open()
            self._sync(job)
            parts = _fed_back if log.is_again else _leaving
            return list(parts(job, log, start, end))

    def _sync(self, job: Job) -> None:
        """Sync the checkpoint, once per epoch: its offsets are written and no task has started."""
        if self._files is None:
            self._files = SparkFiles(Path(job.checkpoint), job.generation)
        if job.survives_power_loss:
            self._files.sync()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        with error_boundary():
            job, log = self._open()
            if partition.path:
                yield from _rows(job, log, partition)
            yield from record_batches(control_rows(job, log.name, partition.watermark))
            labels = job.addresses.labels if job.topology.levels else ()
            rows = [(label, EVERYONE, *row) for row in partition.control for label in labels]
            yield from record_batches(rows)


def _fed_back(job: Job, log: FromLog, start: Any, end: Any) -> Iterator[_Part]:
    logs = Logs(job)
    for epoch in logs.folder(log.name).published():
        if start["entry"] <= epoch < end["entry"]:
            paths = logs.files(log.name, epoch)
            yield from (_Part(epoch, path, tuple(paths)) for path in paths)


def _leaving(job: Job, log: FromLog, start: Any, end: Any) -> Iterator[_Part]:
    leaves = end.get("leaves")
    if leaves is None:
        return
    logs = Logs(job)
    for epoch in logs.folder(log.name).published():
        if leaves <= epoch < end[PLANNED]:
            paths = (p for p in logs.files(log.name, epoch) if leaves in inputs_in(p))
            yield from (_Part(epoch, path, leaves=leaves) for path in paths)
    if end.get("watermark") != start.get("watermark"):
        yield _Part(watermark=base64.b64decode(end["watermark"]))
    if end.get("end") and not start.get("end"):
        yield _Part(control=((END, BEHIND),))
    if any(
        segment.number in job.loops.keeps_states_per_input
        for level in job.topology.levels
        for segment in level
    ):
        yield _Part(control=((OVER, pack_number(leaves)),))


def _rows(job: Job, log: FromLog, part: _Part) -> Iterator[pa.RecordBatch]:
    inputs = job.loops.input_epochs(part.epoch)
    for number, lines in lines_by_input(part.path):
        if log.is_again:
            shuffle = ShuffleWriter(job.addresses.labels, inputs).for_input(number)
            orders = (order for path in part.epoch_files for order in _orders_of(path, number))
            order_of = _rank_orders(len(job.sources), orders)
            yield from _sent(job, log, shuffle, part.path, lines, order_of)
        elif number == part.leaves:
            before = order_bytes((len(job.sources), part.epoch))
            shuffle = ShuffleWriter(job.addresses.labels, inputs)
            yield from _sent(job, log, shuffle, part.path, lines, before.__add__)


def _orders_of(path: str, number: int) -> list[bytes]:
    by_input = lines_by_input(path)
    return [o for found, lines in by_input if found == number for o in orders_in(path, lines)]


def _sent(
    job: Job,
    log: FromLog,
    shuffle: ShuffleWriter,
    path: str,
    lines: Sequence[bytes],
    order_of: Callable[[bytes], bytes],
) -> Iterator[pa.RecordBatch]:
    """The rows of log lines; `order_of` maps the order of an event to that in this epoch."""
    sender = Sender(job, job.topology.source_segment(log.name), shuffle)
    for start in range(0, len(lines), _LINES):
        batch = job.codecs.log_lines[log.name].read(
            path, lines[start : start + _LINES], job.addresses.keyless_label
        )
        orders = list(map(order_of, batch.orders)) if sender.is_order_sensitive else []
        sender.through(replace(batch, orders=orders))
        yield from record_batches(shuffle.ready())
    yield from record_batches(shuffle.drain())


def _rank_orders(first: int, orders: Iterable[bytes]) -> Callable[[bytes], bytes]:
    """Map an order to its rank among the orders of all events that its round fed back."""
    ranks = {order: rank for rank, order in enumerate(sorted(orders))}
    return lambda order: order_bytes((first, ranks[order]))


def _completed(job: Job, log: FromLog, leaving: InputEpoch) -> bytes | None:
    """The watermark of all sources upstream of the loop at an input epoch, encoded."""
    if log.name not in job.requirements.watermark_sources:
        return None
    watermarks: dict[str, Any] = {}
    for name in log.origins:
        entry = leaving.entries.get(name, 0)
        kept = read_entry(Path(job.checkpoint) / "sources" / name, entry, LOG)
        tracker = job.watermark_tracker_of(name)
        watermark = (
            tracker.completed(Chunk.of_json(kept[-1]).newest_after) if tracker and kept else None
        )
        if watermark is None:
            return None
        watermarks[name] = watermark
    completed = job.requirements.completed(job.requirements.entering(log.loop), watermarks)
    return None if completed is None else job.codecs.watermark_codecs[log.name].encode(completed)


def _refuse_endless(job: Job, log: FromLog, plan: Planned) -> None:
    """Raise if an input epoch would need more rounds than allowed."""
    for each in plan.inside:
        if each.number in plan.iterating and each.round + 1 == log.max_rounds:
            raise _too_many_rounds(job, log, each.number)


def _too_many_rounds(job: Job, log: FromLog, number: int) -> RunError:
    logs = Logs(job)
    paths = (path for epoch in logs.unread() for path in logs.files(log.name, epoch))
    parts = ((path, part) for path in paths for part in lines_by_input(path))
    lines = [(path, line) for path, (found, part) in parts if found == number for line in part]
    path, line = min(lines, key=lambda each: orders_in(each[0], [each[1]]))
    first = job.codecs.log_lines[log.name].read(path, [line], 0)
    title = f"iterate '{log.loop}' ({log.where})"
    time = first.times[0] if first.times else None
    assert log.max_rounds is not None
    return RunError(bound_reached(title, log.max_rounds, len(lines), first.values[0], time))
