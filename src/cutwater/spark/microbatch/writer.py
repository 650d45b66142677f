"""One writer for all sinks of a flow: all sinks of an epoch belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from cutwater.errors import Problem, RefusedError, RunFailure
from cutwater.spark.checkpoint.sink_records import note_shown
from cutwater.spark.connectors.base.sink import Receipt
from cutwater.spark.exchange.sink_rows import lane_of
from cutwater.spark.job.spec import load_job, speaking
from cutwater.spark.telemetry.row_counts import note_rows

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
    receipts: list[Receipt]
    rows: dict[str, int]
    """How many there are for each sink."""


class _Writer(DataSourceStreamArrowWriter):
    def __init__(self, job: bytes) -> None:
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Hand each sink what this task has for it, in order; runs again if the task is retried."""
        with speaking():
            job = load_job(self._job)
            epoch = epoch_of_task()
            parcels: dict[int, dict[int, list[bytes]]] = {}
            for batch in iterator:
                for row in batch.to_pylist():
                    found = parcels.setdefault(row["target"], {})
                    found.setdefault(row["label"], []).append(row["body"])
            receipts, counts = [], {}
            for target, found in sorted(parcels.items()):
                name, record = job.sink_at(target), job.type_of_sink(target)
                lanes = [lane_of(job, target, label, rows) for label, rows in sorted(found.items())]
                receipts.append(job.sinks[name].write(job.claim_of(name), epoch, record, lanes))
                counts[name] = sum(len(lane.orders) for lane in lanes)
            return _Written(epoch, receipts, counts)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Publish what the successful attempts wrote, sink by sink."""
        with speaking():
            job = load_job(self._job)
            written = [message for message in messages if isinstance(message, _Written)]
            if any(message.epoch != batchId for message in written):
                raise RunFailure(_epochs_disagree(batchId, [m.epoch for m in written]))
            for name, sink in job.sinks.items():
                receipts = [r for m in written for r in m.receipts if r.sink == name]
                sink.publish(job.claim_of(name), batchId, receipts)
            totals = _totals(written)
            own = [name for name in job.own_sinks if totals.get(name)]
            note_shown(job.checkpoint, batchId, own)
            note_rows(job.checkpoint, batchId, totals)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to undo: what was staged is swept when the next run takes the output."""


def _totals(written: Iterable[_Written]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for message in written:
        totals.update(message.rows)
    return totals


def epoch_of_task() -> int:
    """The number of the micro-batch that the current task belongs to.

    A local property that Spark sets for its own use; read here and nowhere else.
    """
    context = TaskContext.get()
    value = context.getLocalProperty("streaming.sql.batchId") if context else None
    if value is None:
        raise RefusedError(
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
