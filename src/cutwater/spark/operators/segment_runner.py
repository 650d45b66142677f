"""The work of one segment in one bucket: an epoch's data, its barrier, its watermark, the end.

What comes after the data has the order of `semantics.simulator`: an epoch's barrier and watermark
come after all sources, segment by segment in the order of their stages, and key by key.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

from cutwater.errors import StepError
from cutwater.events import Data, Watermark
from cutwater.flow.fusing import Segment
from cutwater.ordering import AFTER_DATA, NO_KEY, order_bytes
from cutwater.spark.exchange.batch import EventBatch, joined
from cutwater.spark.exchange.envelope import ShuffleWriter
from cutwater.spark.exchange.readable_keys import key_of
from cutwater.spark.exchange.router import EmittedRow, Sender
from cutwater.spark.job.spec import Job
from cutwater.spark.state.bucket import BucketStates
from cutwater.spark.state.working_set import WorkingSet

__all__ = [
    "PIECE_ROWS",
    "EventRunner",
    "Piece",
    "SegmentRunner",
    "error_at",
    "packed_in_pieces",
    "unpack_events",
]

PIECE_ROWS = 65_536
"""The most events of a bucket that are decoded at a time: a decoded row takes more than a kilobyte,
a packed one a tenth of that."""

Piece = tuple[EventBatch, list[int]]
"""Events in their order, and the index of each one's first output."""


def packed_in_pieces(
    job: Job, segment: Segment, bodies: Sequence[bytes], label: int
) -> Iterator[Piece]:
    """The events for a segment in their order, `PIECE_ROWS` at a time.

    Bodies are merged by the least order of each: only those are decoded that overlap. Where a piece
    ends depends on nothing but the order of the events, so a replay has the same pieces.
    """
    if not bodies:
        return
    codec = job.codecs.event_codecs[segment.number]
    waiting = sorted(bodies, key=codec.least_order, reverse=True)
    if job.permute is not None or len(waiting) < 2 or not codec.least_order(waiting[-1]):
        yield from _cut(unpack_events(job, segment, bodies, label))
        return
    held: list[Piece] = []
    while waiting:
        held.append(unpack_events(job, segment, [waiting.pop()], label))
        horizon = codec.least_order(waiting[-1]) if waiting else None
        if horizon is not None and _count_before(held, horizon) < PIECE_ROWS:
            continue
        before, held = _parted(held, horizon)
        for piece in _cut(_merged(before, segment.reads_twice)):
            if horizon is not None and len(piece[0]) < PIECE_ROWS:
                held.append(piece)
            else:
                yield piece


def _count_before(held: Sequence[Piece], horizon: bytes) -> int:
    return sum(bisect_left(batch.orders, horizon) for batch, _ in held)


def _parted(held: Sequence[Piece], horizon: bytes | None) -> tuple[list[Piece], list[Piece]]:
    """The part before an order, and the rest."""
    before: list[Piece] = []
    after: list[Piece] = []
    for batch, firsts in held:
        position = len(batch) if horizon is None else bisect_left(batch.orders, horizon)
        for part, start, end in ((before, 0, position), (after, position, len(batch))):
            if start < end:
                part.append((batch.part(start, end, batch.label), firsts[start:end]))
    return before, after


def _merged(pieces: Sequence[Piece], by_index: bool) -> Piece:
    """Merges sorted pieces; copies of an event follow one another, input by input."""
    batch = joined(batch for batch, _ in pieces)
    firsts = list(chain(*(firsts for _, firsts in pieces)))
    if not by_index:
        return batch.in_order(), firsts
    indices = sorted(range(len(batch)), key=lambda i: (batch.orders[i], firsts[i]))
    return batch.take(indices), [firsts[i] for i in indices]


def _cut(piece: Piece) -> Iterator[Piece]:
    batch, firsts = piece
    for start in range(0, len(batch), PIECE_ROWS):
        end = min(start + PIECE_ROWS, len(batch))
        yield batch.part(start, end, batch.label), firsts[start:end]


def unpack_events(
    job: Job, segment: Segment, bodies: Sequence[bytes], label: int
) -> tuple[EventBatch, list[int]]:
    """The events for a segment in their order, and the index of each one's first output.

    Copies of an event follow one another input by input.
    """
    read = [job.codecs.event_codecs[segment.number].read(body) for body in bodies]
    if segment.reads_twice:
        read.sort(key=lambda events: events[0])
    batch = joined(batch for _, batch in read)
    batch.label = label
    firsts = list(chain(*(repeat(segment.first_index(port), len(part)) for port, part in read)))
    if job.permute is not None:
        batch, firsts = _permuted(batch, firsts, job.permute)
    return _merged([(batch, firsts)], segment.reads_twice)


def _permuted(batch: EventBatch, firsts: list[int], seed: int) -> tuple[EventBatch, list[int]]:
    indices = list(range(len(batch)))
    random.Random(seed).shuffle(indices)
    return batch.take(indices), [firsts[i] for i in indices]


def error_at(error: StepError, batch: EventBatch, row: int) -> StepError:
    """The error with the order of the event that caused it."""
    error.order = batch.orders[row] if row < len(batch.orders) else b""
    return error


class SegmentRunner:
    """Runs one segment on one bucket; most only process data."""

    def data(self, bodies: Sequence[bytes]) -> Iterator[None]:
        """Process the events of an epoch in order; output may be sent after each yield."""
        raise NotImplementedError

    def barrier(self) -> None:
        """Process the barrier for the keys that the epoch touched."""

    def watermark(self, time: Any) -> None:
        """Process a watermark for the keys that may act on it."""

    def finish(self) -> None:
        """Process the end of the input for all keys."""

    def save(self) -> None:
        """Write changed states back to the bucket."""


class EventRunner(SegmentRunner):
    """Runs any segment, event by event."""

    def __init__(
        self, job: Job, segment: Segment, bucket: BucketStates, shuffle: ShuffleWriter
    ) -> None:
        self._job = job
        self._segment = segment
        self._operator = segment.operator
        self._live = WorkingSet(job.codecs.storages[segment.number], bucket)
        self._sender = Sender(job, segment, shuffle)
        self._label = bucket.label

    def data(self, bodies: Sequence[bytes]) -> Iterator[None]:
        for piece in packed_in_pieces(self._job, self._segment, bodies, self._label):
            self._piece(*piece)
            yield

    def _piece(self, batch: EventBatch, firsts: list[int]) -> None:
        keys: Any = self._job.codecs.event_codecs[self._segment.number].keys_of(batch) or repeat(
            None
        )
        times: Any = batch.times or repeat(None)
        step, get, put = self._operator.step, self._live.get, self._live.put
        emitted: list[EmittedRow] = []
        try:
            for order, key_bytes, key, time, value, first in zip(
                batch.orders, batch.key_bytes, keys, times, batch.values, firsts, strict=False
            ):
                state, outputs = step(get(key_bytes, key), Data(time, value))
                put(key_bytes, key, state)
                emitted.append((order, key_bytes, key, outputs, first))
        except StepError as error:
            raise error_at(error, batch, len(emitted)) from error.__cause__
        self._sender.events(emitted, self._label)

    def barrier(self) -> None:
        if self._operator.barrier is not None:
            self._visit(self._live.touched(), 0, AFTER_DATA, self._operator.barrier)

    def watermark(self, time: Any) -> None:
        self._wake()
        step, event = self._operator.step, Watermark(time)

        def advanced(state: Any) -> tuple[Any, list[Data]]:
            state, outputs = step(state, event)
            return state, _data(outputs)

        self._visit(self._live.due(time), 1, AFTER_DATA, advanced)

    def finish(self) -> None:
        self._wake()
        finish = self._operator.finish

        def ended(state: Any) -> tuple[None, list[Data]]:
            return None, _data(finish(state))

        self._visit(self._live.all(), 0, AFTER_DATA + 1, ended, keeps=False)

    def _visit(
        self,
        keys: Iterable[bytes],
        rank: int,
        after: int,
        called: Callable[[Any], tuple[Any, Sequence[Data]]],
        keeps: bool = True,
    ) -> None:
        """Process a barrier, a watermark or the end of the input for some keys."""
        order = order_bytes((after, self._segment.stage, rank))
        emitted: list[EmittedRow] = []
        key_bytes = NO_KEY
        try:
            for key_bytes in keys:
                key = self._live.key(key_bytes)
                state, outputs = called(self._live.get(key_bytes, key))
                if keeps:
                    self._live.put(key_bytes, key, state)
                emitted.append((order, key_bytes, key, outputs, 0))
        except StepError as error:
            is_keyed = key_bytes != NO_KEY
            raise (error.of_key(key_of(key_bytes)) if is_keyed else error) from error.__cause__
        self._sender.events(emitted, self._label)

    def save(self) -> None:
        self._live.write_back()

    def _wake(self) -> None:
        """Store the state that exists before the first event, for watermarks and the end."""
        if self._job.topology.wakes(self._segment, self._label):
            self._live.put(NO_KEY, None, self._live.get(NO_KEY, None))


def _data(events: Any) -> list[Data]:
    return [event for event in events if isinstance(event, Data)]
