"""A level: all stateful segments of one depth in one Spark operator, one group per bucket.

Rows that are addressed to a deeper level or to a sink pass unchanged. A notice, of what a source
has completed or of the end of the input, is for every bucket of every level that heeds it: it is
taken after the epoch's data, and passed on. An epoch's border matters only to keys that the epoch
touched, so it comes to a bucket with its events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cutwater.codec import UNENCODABLE
from cutwater.errors import InputError, Problem, StepError
from cutwater.flow.fusing import Segment
from cutwater.spark.exchange.batch import much_at_once
from cutwater.spark.exchange.envelope import DATA, END, Outbox, Parcel, row_of, unpack_mark
from cutwater.spark.job.spec import Job, load_job, speaking
from cutwater.spark.microbatch.origin import origin_of
from cutwater.spark.operators.aggregate import AggregateWork
from cutwater.spark.operators.segment_runner import SegmentWork, Work
from cutwater.spark.operators.task import TaskWork, only_task
from cutwater.spark.operators.vectorised import VectorWork, vectorised_task
from cutwater.spark.state.bucket import BucketStates, StateStore

__all__ = ["Level"]


@dataclass
class _Inbox:
    """What a bucket was sent in an epoch."""

    mail: dict[int, list[bytes]] = field(default_factory=dict)
    """The events for each segment, packed."""
    marks: dict[str, bytes] = field(default_factory=dict)
    """What sources have completed, encoded."""
    has_ended: bool = False

    def take(self, row: Row) -> None:
        """Put a row where it belongs."""
        if row.kind == DATA:
            self.mail.setdefault(row.target, []).append(bytes(row.body))
        elif row.kind == END:
            self.has_ended = True
        else:
            source, time = unpack_mark(bytes(row.body))
            self.marks[source] = time


class Level(StatefulProcessor):
    """Sorts what each bucket was sent by its order, runs the segments on it, and sends it on."""

    def __init__(self, job: bytes, level: int) -> None:
        self._job = job
        self._level = level

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._store = StateStore(handle)

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,
    ) -> Iterator[Row]:
        with speaking():
            yield from self._work(int(key[0]), rows)

    def _work(self, label: int, rows: Iterator[Row]) -> Iterator[Row]:
        job = load_job(self._job)
        here = {segment.number for segment in job.levels[self._level]}
        inbox = _Inbox()
        for row in rows:
            is_notice = row.kind != DATA
            if row.target in here or is_notice:
                inbox.take(row)
            if not (row.target in here or (is_notice and job.is_last(self._level, row.kind))):
                yield row
        bucket = BucketStates(self._store, job.query_id, self._level, label)
        outbox = Outbox(job.labels)
        parcels = _epoch(job, self._level, inbox, bucket, outbox)
        while True:  # what a piece of the epoch caused leaves before the next is worked on
            with much_at_once():
                parcel = next(parcels, None)
            if parcel is None:
                return
            yield row_of(parcel)

    def close(self) -> None:
        pass


def _work_of(job: Job, segment: Segment, bucket: BucketStates, outbox: Outbox) -> Work:
    """What works on a segment in the quickest way there is."""
    aggregation = job.aggregations.get(segment.number)
    if aggregation is not None:
        return AggregateWork(job, aggregation, bucket, outbox)
    vector, task = vectorised_task(segment), only_task(segment)
    if vector is not None:
        return VectorWork(job, segment, vector, bucket, outbox)
    if task is not None:
        return TaskWork(job, segment, task, bucket, outbox)
    return SegmentWork(job, segment, bucket, outbox)


def _cannot_be_written(segment: Segment, error: Exception) -> Problem:
    names = ", ".join(f"'{part.step.name}'" for part in segment.parts)
    return Problem(
        "cannot-be-written",
        f"a state or a record of {names} cannot be written down: {error}",
        "whole numbers have at most 64 bits; keep larger ones as text, and do not nest without end",
    )


def _epoch(
    job: Job, level: int, inbox: _Inbox, bucket: BucketStates, outbox: Outbox
) -> Iterator[Parcel]:
    """Run an epoch of one bucket; nothing is read or written that need not be."""
    remembers = bool(inbox.marks) and job.needs.marks_meet
    before = bucket.marks if remembers else {}
    after = before | inbox.marks
    for segment in job.levels[level]:
        mail = inbox.mail.get(segment.number, [])
        completed = job.newly_completed(segment, before, after) if inbox.marks else None
        is_told = completed is not None and (bucket.busy or job.wakes(segment, bucket.label))
        if not (mail or inbox.has_ended or is_told):
            continue
        work = _work_of(job, segment, bucket, outbox)
        try:
            for _ in work.data(mail):
                yield from outbox.ready()
            if inbox.has_ended:
                work.finish()
            else:
                work.border()
                if completed is not None:
                    work.watermark(completed)
                work.save()
        except StepError as error:
            place = origin_of(job, error.order)
            raise (error.came_from(place) if place else error) from error.__cause__
        except UNENCODABLE as error:  # what a step itself raises comes as a sentence
            raise InputError(_cannot_be_written(segment, error)) from None
        yield from outbox.take()
    bucket.save(after if remembers else None)
