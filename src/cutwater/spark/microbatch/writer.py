"""One writer for all sinks of a flow: an epoch is written to all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from cutwater.errors import Problem, RunFailure
from cutwater.spark.checkpoint.sink_records import note_released
from cutwater.spark.connectors.base.sink import Receipt
from cutwater.spark.exchange.sink_rows import bucket_rows
from cutwater.spark.job.error_boundary import error_boundary
from cutwater.spark.job.transport import load_job
from cutwater.spark.microbatch import epochs
from cutwater.spark.telemetry.row_counts import note_rows

__all__ = ["SinksWriter"]


class SinksWriter(DataSource):
    """The data sink of a job; a subclass per job carries it."""

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
    """The number of rows for each sink."""


class _Writer(DataSourceStreamArrowWriter):
    def __init__(self, job: bytes) -> None:
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Hand each sink the rows of this task, in order; runs again if the task is retried."""
        with error_boundary():
            job = load_job(self._job)
            epoch = epochs.epoch_of_task()
            rows: dict[int, dict[int, list[bytes]]] = {}
            for batch in iterator:
                for row in batch.to_pylist():
                    found = rows.setdefault(row["target"], {})
                    found.setdefault(row["label"], []).append(row["body"])
            receipts, counts = [], {}
            for target, found in sorted(rows.items()):
                name, record = job.addresses.sink_at(target), job.addresses.type_of_sink(target)
                buckets = [
                    bucket_rows(job, target, label, rows) for label, rows in sorted(found.items())
                ]
                receipts.append(job.sinks[name].write(job.claim_of(name), epoch, record, buckets))
                counts[name] = sum(len(bucket.orders) for bucket in buckets)
            return _Written(epoch, receipts, counts)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Publish what the successful attempts wrote, sink by sink."""
        with error_boundary():
            job = load_job(self._job)
            written = [message for message in messages if isinstance(message, _Written)]
            if any(message.epoch != batchId for message in written):
                raise RunFailure(_epochs_disagree(batchId, [m.epoch for m in written]))
            for name, sink in job.sinks.items():
                receipts = [r for m in written for r in m.receipts if r.sink == name]
                sink.publish(job.claim_of(name), batchId, receipts)
            # After all sinks: a note of rows that a sink does not have would refuse the next start.
            totals = _totals(written)
            own = [name for name in job.own_sinks if totals.get(name)]
            note_released(job.checkpoint, batchId, own)
            note_rows(job.checkpoint, batchId, totals)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to undo: the next run to claim the output removes what was staged."""


def _totals(written: Iterable[_Written]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for message in written:
        totals.update(message.rows)
    return totals


def _epochs_disagree(expected: int, found: list[int]) -> Problem:
    return Problem(
        "epochs-disagree",
        f"tasks wrote for epochs {sorted(set(found))}, but Spark commits epoch {expected}",
        "use a supported version of PySpark (4.3)",
    )
