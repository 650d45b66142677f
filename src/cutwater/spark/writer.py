"""One writer for all sinks of a flow: all sinks of an epoch belong together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from cutwater.errors import Problem, RunError
from cutwater.spark.folder import Staged
from cutwater.spark.job import load_job, speaking
from cutwater.spark.rows import unpack_lines

__all__ = ["SinksWriter", "epoch_of_task"]


class SinksWriter(DataSource):
    """The data sink of a job; a class of its own is made for each job, which carries it."""

    job: bytes

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    @classmethod
    def of(cls, job: bytes) -> type[SinksWriter]:
        """The data sink of a job."""
        return type("cutwater_sinks", (cls,), {"job": job})

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return _Writer(self.job)


@dataclass
class _Written(WriterCommitMessage):
    epoch: int
    staged: list[Staged]


class _Writer(DataSourceStreamArrowWriter):
    def __init__(self, job: bytes) -> None:
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage what this task has for each sink, in order; runs again if the task is retried."""
        with speaking():
            job = load_job(self._job)
            epoch = epoch_of_task()
            parcels: dict[int, list[tuple[int, list[bytes], list[bytes]]]] = {}
            for batch in iterator:
                for row in batch.to_pylist():
                    parcel = (row["label"], *unpack_lines(row["body"]))
                    parcels.setdefault(row["target"], []).append(parcel)
            first = len(job.plan.segments)
            staged = []
            for target, found in sorted(parcels.items()):
                name = job.sink_names[target - first]
                staged.append(job.sinks[name].stage(name, epoch, _in_order(found), _lanes(found)))
            return _Written(epoch, staged)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Publish what the successful attempts staged, sink by sink."""
        with speaking():
            job = load_job(self._job)
            written = [message for message in messages if isinstance(message, _Written)]
            if any(message.epoch != batchId for message in written):
                raise RunError(_epochs_disagree(batchId, [m.epoch for m in written]))
            for name, sink in job.sinks.items():
                staged = [part for m in written for part in m.staged if part.sink == name]
                sink.publish(batchId, job.generation, job.query_id, staged)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to undo: what was staged is swept when the next run takes the output."""


_Parcels = Sequence[tuple[int, list[bytes], list[bytes]]]
"""Label, orders and lines of each parcel."""


def _in_order(parcels: _Parcels) -> list[bytes]:
    """The lines of all parcels, by their orders."""
    orders = [order for _, parcel, _ in parcels for order in parcel]
    lines = [line for _, _, parcel in parcels for line in parcel]
    return [lines[i] for i in sorted(range(len(lines)), key=orders.__getitem__)]


def _lanes(parcels: _Parcels) -> list[tuple[int, int, str]]:
    """For each label how many lines it has, and the last order of them."""
    rows: dict[int, int] = {}
    last: dict[int, bytes] = {}
    for label, orders, _ in parcels:
        rows[label] = rows.get(label, 0) + len(orders)
        last[label] = max(last.get(label, b""), max(orders))
    return [(label, count, last[label].hex()) for label, count in rows.items()]


def epoch_of_task() -> int:
    """The number of the micro-batch that the current task belongs to.

    A local property that Spark sets for its own use; read here and nowhere else.
    """
    context = TaskContext.get()
    value = context.getLocalProperty("streaming.sql.batchId") if context else None
    if value is None:
        raise RunError(
            Problem(
                "no-epoch",
                "Spark did not tell a task which epoch it belongs to",
                "use a supported version of PySpark (4.3)",
            )
        )
    return int(value)


def _epochs_disagree(expected: int, found: list[int]) -> Problem:
    return Problem(
        "epochs-disagree",
        f"tasks wrote for epochs {sorted(set(found))}, but Spark commits epoch {expected}",
        "use a supported version of PySpark (4.3)",
    )
