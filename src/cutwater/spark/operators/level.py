"""Runs one stateful operator on one bucket for one epoch; both engines use it.

Level n is the n-th stateful operator after the sources.

A control row carries a watermark or the end of the input to every bucket of every level that needs
it: it is applied after the epoch's data and passed on. An epoch's barrier matters only to keys that
the epoch touched, so it reaches a bucket with its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cutwater.codec import UNENCODABLE
from cutwater.errors import InputError, Problem, StepError
from cutwater.flow.fusing import Segment
from cutwater.spark.exchange.envelope import (
    BEHIND,
    DATA,
    END,
    OVER,
    ShuffleRow,
    ShuffleWriter,
    split_input_epoch,
    unpack_watermark,
)
from cutwater.spark.job.codecs import Codecs
from cutwater.spark.job.spec import Job
from cutwater.spark.job.topology import Topology
from cutwater.spark.operators.aggregate import AggregateRunner
from cutwater.spark.operators.segment_runner import EventRunner, SegmentRunner
from cutwater.spark.operators.task import TaskRunner, only_task
from cutwater.spark.operators.vectorised import VectorisedRunner, vectorised_task
from cutwater.spark.state.bucket import BucketStates
from cutwater.spark.state.input_states import StatesOfInput

__all__ = ["BucketInput", "work_epoch"]


@dataclass
class BucketInput:
    """The rows that a bucket received in an epoch, for one level."""

    topology: Topology
    level: int
    packed: dict[int, list[bytes]] = field(default_factory=dict)
    """The packed events for each segment, except those inside a loop that feeds back."""
    in_loop: dict[int, dict[int, list[bytes]]] = field(default_factory=dict)
    """The events for each segment inside such a loop, by input epoch."""
    over: list[int] = field(default_factory=list)
    """The input epochs that have left the loop."""
    watermarks: dict[str, bytes] = field(default_factory=dict)
    """The watermark of each source, encoded."""
    has_ended: bool = False
    """Has the input ended?"""
    has_loop_ended: bool = False
    """Is the output of a loop with one iteration per epoch complete, since the input has ended?"""

    def accept(self, target: int, kind: int, body: bytes) -> bool:
        """Add a row; returns whether it is forwarded to a deeper level or to a sink."""
        if kind == DATA:
            is_here = target in self.topology.segments_at(self.level)
            if is_here:
                self._keep(target, bytes(body))
            return not is_here
        if kind == OVER:
            self.over.append(split_input_epoch(bytes(body))[0])
        elif kind == END and bytes(body) == BEHIND:
            self.has_loop_ended = True
        elif kind == END:
            self.has_ended = True
        else:
            source, time = unpack_watermark(bytes(body))
            self.watermarks[source] = time
        return not self.topology.is_last(self.level, kind)

    def _keep(self, target: int, body: bytes) -> None:
        if target not in self.topology.loops.inside:
            self.packed.setdefault(target, []).append(body)
            return
        number, rest = split_input_epoch(body)
        self.in_loop.setdefault(target, {}).setdefault(number, []).append(rest)

    def ends(self, segment: Segment) -> bool:
        """Has the input of a segment ended? A loop that feeds back ends when it is empty."""
        where = self.topology.loops.side_of(segment)
        return {"before": self.has_ended, "inside": False, "behind": self.has_loop_ended}[where]


def work_epoch(
    job: Job,
    level: int,
    received: BucketInput,
    bucket: BucketStates,
    shuffle: ShuffleWriter,
    origin_of: Callable[[Job, bytes], str],
) -> Iterator[ShuffleRow]:
    """Run an epoch of one bucket; reads and writes only the states that it needs.

    `origin_of` finds the origin of an event by its order, for the error of a failed function.
    """
    remembers = bool(received.watermarks) and job.requirements.watermarks_meet
    before = bucket.watermarks if remembers else {}
    after = before | received.watermarks
    for segment in job.topology.levels[level]:
        for number, events in sorted(received.in_loop.get(segment.number, {}).items()):
            states = StatesOfInput(bucket, number) if job.loops.overlaps else bucket
            own = shuffle.for_input(number)
            yield from _run_round(job, segment, events, states, own, origin_of)
        packed = received.packed.get(segment.number, [])
        completed = (
            job.codecs.newly_completed(segment, before, after) if received.watermarks else None
        )
        is_due = completed is not None and (
            bucket.busy or job.topology.wakes(segment, bucket.label)
        )
        is_over = received.ends(segment)
        if not (packed or is_over or is_due):
            continue
        runner = _runner_of(job, segment, bucket, shuffle)
        with _naming(job, segment, origin_of):
            for _ in runner.data(packed):
                yield from shuffle.ready()
            if is_over:
                with _called_since(lambda: "the input has ended"):
                    runner.finish()
            else:
                with _called_since(lambda: "the epoch has ended"):
                    runner.barrier()
                if completed is not None:
                    with _called_since(partial(_completion, job.codecs, segment, after, completed)):
                        runner.watermark(completed)
                runner.save()
        yield from shuffle.drain()
    for number in received.over:
        StatesOfInput(bucket, number).forget()
    bucket.save(after if remembers else None)


@contextmanager
def _called_since(why: Callable[[], str]) -> Iterator[None]:
    """Add to a `StepError` why the function was called, if it was not for an event."""
    try:
        yield
    except StepError as error:
        raise error.called_since(why()) from error.__cause__


def _completion(
    codecs: Codecs, segment: Segment, watermarks: Mapping[str, bytes], time: Any
) -> str:
    reached = ", ".join(
        f"source '{name}' has reached {watermark!r}"
        for name, watermark in codecs.reached(segment, watermarks)
    )
    return f"time {time!r} is complete: {reached}"


def _run_round(
    job: Job,
    segment: Segment,
    packed: list[bytes],
    states: BucketStates,
    shuffle: ShuffleWriter,
    origin_of: Callable[[Job, bytes], str],
) -> Iterator[ShuffleRow]:
    """An iteration of one input epoch; inside a loop its end is a barrier."""
    runner = _runner_of(job, segment, states, shuffle)
    with _naming(job, segment, origin_of):
        for _ in runner.data(packed):
            yield from shuffle.ready()
        runner.barrier()
        runner.save()
    yield from shuffle.drain()


@contextmanager
def _naming(job: Job, segment: Segment, origin_of: Callable[[Job, bytes], str]) -> Iterator[None]:
    """Add to errors of a segment where the failing event came from."""
    try:
        yield
    except StepError as error:
        origin = origin_of(job, error.order)
        raise (error.came_from(origin) if origin else error) from error.__cause__
    except UNENCODABLE as error:  # errors of the step itself are `StepError`s
        raise InputError(_cannot_be_written(segment, error)) from None


def _runner_of(
    job: Job, segment: Segment, bucket: BucketStates, shuffle: ShuffleWriter
) -> SegmentRunner:
    """The fastest runner for a segment."""
    aggregation = job.topology.aggregations.get(segment.number)
    if aggregation is not None:
        return AggregateRunner(job, aggregation, bucket, shuffle)
    vector, task = vectorised_task(segment), only_task(segment)
    if vector is not None and segment.number not in job.loops.keeps_states_per_input:
        return VectorisedRunner(job, segment, vector, bucket, shuffle)
    if task is not None:
        return TaskRunner(job, segment, task, bucket, shuffle)
    return EventRunner(job, segment, bucket, shuffle)


def _cannot_be_written(segment: Segment, error: Exception) -> Problem:
    names = ", ".join(f"'{part.step.name}'" for part in segment.parts)
    return Problem(
        "cannot-be-written",
        f"a state or a record of {names} cannot be serialised: {error}",
        "integers have at most 64 bits; keep larger ones as text, and limit the nesting",
    )
