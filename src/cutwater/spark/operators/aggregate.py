"""The work of a segment that is a running aggregate over whole columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cutwater.spark.exchange.batch import EventBatch
from cutwater.spark.exchange.envelope import ShuffleWriter
from cutwater.spark.exchange.router import Sender
from cutwater.spark.job.spec import Job
from cutwater.spark.operators.aggregation import Aggregation
from cutwater.spark.operators.segment_runner import SegmentRunner, packed_in_pieces, unpack_events
from cutwater.spark.state.bucket import BucketStates

__all__ = ["AggregateRunner"]


class AggregateRunner(SegmentRunner):
    """Runs such a segment on one bucket."""

    def __init__(
        self, job: Job, aggregation: Aggregation, bucket: BucketStates, shuffle: ShuffleWriter
    ) -> None:
        self._job = job
        self._aggregation = aggregation
        self._bucket = bucket
        self._sender = Sender(job, aggregation.segment, shuffle)

    def data(self, bodies: Sequence[bytes]) -> Iterator[None]:
        for batch in self._batches(bodies):
            self._work(batch)
            yield

    def _batches(self, bodies: Sequence[bytes]) -> Iterator[EventBatch]:
        """The events in batches; in one batch if a record is emitted once per epoch."""
        aggregation, label = self._aggregation, self._bucket.label
        if not bodies:
            return
        if aggregation.is_folded_early:
            yield aggregation.unpack(bodies)
        elif aggregation.step.emit == "epoch":
            yield unpack_events(self._job, aggregation.segment, bodies, label)[0]
        else:
            pieces = packed_in_pieces(self._job, aggregation.segment, bodies, label)
            yield from (batch for batch, _ in pieces)

    def _work(self, batch: EventBatch) -> None:
        aggregation = self._aggregation
        table = self._bucket.table(
            aggregation.step.name, aggregation.columns, aggregation.converted
        )
        caused = aggregation.work(batch, table, self._bucket.label)
        self._sender.one_each(caused, caused.values)
