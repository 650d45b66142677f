"""The work of one level on one bucket in one epoch: both engines do it.

A notice, of what a source has completed or of the end of the input, is for every bucket of every
level that heeds it: it is taken after the epoch's data, and passed on. An epoch's border matters
only to keys that the epoch touched, so it comes to a bucket with its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cutwater.codec import UNENCODABLE
from cutwater.errors import InputError, Problem, StepError
from cutwater.flow.fusing import Segment
from cutwater.spark.exchange.envelope import BEHIND, DATA, END, Outbox, Parcel, unpack_mark
from cutwater.spark.job.spec import Job
from cutwater.spark.operators.aggregate import AggregateWork
from cutwater.spark.operators.segment_runner import SegmentWork, Work
from cutwater.spark.operators.task import TaskWork, only_task
from cutwater.spark.operators.vectorised import VectorWork, vectorised_task
from cutwater.spark.state.bucket import BucketStates

__all__ = ["Inbox", "work_epoch"]


@dataclass
class Inbox:
    """What a bucket was sent in an epoch, for one level."""

    job: Job
    level: int
    mail: dict[int, list[bytes]] = field(default_factory=dict)
    """The events for each segment, packed."""
    marks: dict[str, bytes] = field(default_factory=dict)
    """What sources have completed, encoded."""
    has_ended: bool = False
    """Has the input ended?"""
    has_left: bool = False
    """Has a loop that turns a round an epoch nothing more to show, since the input has ended?"""

    def take(self, target: int, kind: int, body: bytes) -> bool:
        """Put a row where it belongs; does it go on to a deeper level or to a sink?"""
        if kind == DATA:
            is_here = target in self.job.segments_at(self.level)
            if is_here:
                self.mail.setdefault(target, []).append(bytes(body))
            return not is_here
        if kind == END and bytes(body) == BEHIND:
            self.has_left = True
        elif kind == END:
            self.has_ended = True
        else:
            source, time = unpack_mark(bytes(body))
            self.marks[source] = time
        return not self.job.is_last(self.level, kind)

    def ends(self, segment: Segment) -> bool:
        """Does nothing more come to a segment? A loop that is cut ends when it is empty."""
        where = self.job.side_of_loop(segment)
        return {"before": self.has_ended, "inside": False, "behind": self.has_left}[where]


def work_epoch(
    job: Job,
    level: int,
    inbox: Inbox,
    bucket: BucketStates,
    outbox: Outbox,
    origin_of: Callable[[Job, bytes], str],
) -> Iterator[Parcel]:
    """Run an epoch of one bucket; nothing is read or written that need not be.

    `origin_of` says by its order where an event came from on which a function failed.
    """
    remembers = bool(inbox.marks) and job.needs.marks_meet
    before = bucket.marks if remembers else {}
    after = before | inbox.marks
    for segment in job.levels[level]:
        mail = inbox.mail.get(segment.number, [])
        completed = job.newly_completed(segment, before, after) if inbox.marks else None
        is_told = completed is not None and (bucket.busy or job.wakes(segment, bucket.label))
        is_over = inbox.ends(segment)
        if not (mail or is_over or is_told):
            continue
        work = _work_of(job, segment, bucket, outbox)
        try:
            for _ in work.data(mail):
                yield from outbox.ready()
            if is_over:
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
