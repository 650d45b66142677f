"""The work of a segment that is a running aggregate over whole columns."""

from __future__ import annotations

from collections.abc import Sequence

from cutwater.spark.exchange.envelope import Outbox
from cutwater.spark.exchange.router import Sender
from cutwater.spark.job.spec import Job
from cutwater.spark.operators.aggregation import Aggregation
from cutwater.spark.operators.segment_runner import Work, read_mail
from cutwater.spark.state.bucket import BucketStates

__all__ = ["AggregateWork"]


class AggregateWork(Work):
    """Such a segment at work on one bucket."""

    def __init__(
        self, job: Job, aggregation: Aggregation, bucket: BucketStates, outbox: Outbox
    ) -> None:
        self._job = job
        self._aggregation = aggregation
        self._bucket = bucket
        self._sender = Sender(job, aggregation.segment, outbox)

    def data(self, bodies: Sequence[bytes]) -> None:
        if not bodies:
            return
        aggregation = self._aggregation
        if aggregation.is_folded_early:
            batch = aggregation.unpack(bodies)
        else:
            batch, _ = read_mail(self._job, aggregation.segment, bodies, self._bucket.label)
        table = self._bucket.table(
            aggregation.step.name, aggregation.columns, aggregation.converted
        )
        caused = aggregation.work(batch, table, self._bucket.label)
        self._sender.one_each(caused, caused.values)
