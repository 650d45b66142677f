"""The work of one segment in one bucket: an epoch's data, its border, its watermark, the end.

What comes after the data has the order of `semantics.simulator`: an epoch's border and watermark
come after all sources, segment by segment in the order of their stages, and key by key.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

from cutwater.events import Data, Watermark
from cutwater.flow.fusing import Segment
from cutwater.ordering import AFTER_DATA, order_bytes
from cutwater.spark.exchange.batch import Batch, joined
from cutwater.spark.exchange.envelope import Outbox
from cutwater.spark.exchange.router import Emitted, Sender
from cutwater.spark.job.spec import Job
from cutwater.spark.state.bucket import BucketStates
from cutwater.spark.state.working_set import LiveStates

__all__ = ["SegmentWork", "Work", "read_mail"]


def read_mail(
    job: Job, segment: Segment, bodies: Sequence[bytes], label: int
) -> tuple[Batch, list[int]]:
    """The events for a segment in their order, and the index of each one's first output.

    Copies of an event follow one another input by input.
    """
    read = [job.letters[segment.number].read(body) for body in bodies]
    if segment.reads_twice:
        read.sort(key=lambda letter: letter[0])
    batch = joined(batch for _, batch in read)
    batch.label = label
    firsts = list(chain(*(repeat(segment.first_index(port), len(part)) for port, part in read)))
    if job.permute is not None:
        batch, firsts = _permuted(batch, firsts, job.permute)
    if not segment.reads_twice:
        return batch.in_order(), firsts
    places = sorted(range(len(batch)), key=lambda i: (batch.orders[i], firsts[i]))
    return batch.take(places), [firsts[i] for i in places]


def _permuted(batch: Batch, firsts: list[int], seed: int) -> tuple[Batch, list[int]]:
    places = list(range(len(batch)))
    random.Random(seed).shuffle(places)
    return batch.take(places), [firsts[i] for i in places]


class Work:
    """One segment at work on one bucket; of most there is nothing to do but data."""

    def data(self, bodies: Sequence[bytes]) -> None:
        """What the events of an epoch cause, in their order."""
        raise NotImplementedError

    def border(self) -> None:
        """What the end of the epoch causes, at the keys it touched."""

    def watermark(self, time: Any) -> None:
        """What a watermark causes, at the keys for which it can matter."""

    def finish(self) -> None:
        """What the end of the input causes, at all keys."""

    def save(self) -> None:
        """Give the bucket what became of the states."""


class SegmentWork(Work):
    """Any segment, event by event."""

    def __init__(self, job: Job, segment: Segment, bucket: BucketStates, outbox: Outbox) -> None:
        self._job = job
        self._segment = segment
        self._operator = segment.operator
        self._live = LiveStates(job.storages[segment.number], bucket)
        self._sender = Sender(job, segment, outbox)
        self._label = bucket.label

    def data(self, bodies: Sequence[bytes]) -> None:
        if not bodies:
            return
        batch, firsts = read_mail(self._job, self._segment, bodies, self._label)
        keys: Any = self._job.letters[self._segment.number].keys_of(batch) or repeat(None)
        times: Any = batch.times or repeat(None)
        step, get, put = self._operator.step, self._live.get, self._live.put
        emitted: list[Emitted] = []
        for order, key_bytes, key, time, value, first in zip(
            batch.orders, batch.key_bytes, keys, times, batch.values, firsts, strict=False
        ):
            state, outputs = step(get(key_bytes, key), Data(time, value))
            put(key_bytes, key, state)
            emitted.append((order, key_bytes, key, outputs, first))
        self._sender.events(emitted, self._label)

    def border(self) -> None:
        if self._operator.border is None:
            return
        order = order_bytes((AFTER_DATA, self._segment.stage, 0))
        emitted: list[Emitted] = []
        for key_bytes in self._live.touched():
            key = self._live.key(key_bytes)
            state, outputs = self._operator.border(self._live.get(key_bytes, key))
            self._live.put(key_bytes, key, state)
            emitted.append((order, key_bytes, key, outputs, 0))
        self._sender.events(emitted, self._label)

    def watermark(self, time: Any) -> None:
        order = order_bytes((AFTER_DATA, self._segment.stage, 1))
        emitted: list[Emitted] = []
        for key_bytes in self._live.due(time):
            key = self._live.key(key_bytes)
            state, outputs = self._operator.step(self._live.get(key_bytes, key), Watermark(time))
            self._live.put(key_bytes, key, state)
            emitted.append((order, key_bytes, key, _data(outputs), 0))
        self._sender.events(emitted, self._label)

    def finish(self) -> None:
        order = order_bytes((AFTER_DATA + 1, self._segment.stage, 0))
        emitted: list[Emitted] = []
        for key_bytes in self._live.all():
            key = self._live.key(key_bytes)
            outputs = self._operator.finish(self._live.get(key_bytes, key))
            emitted.append((order, key_bytes, key, _data(outputs), 0))
        self._sender.events(emitted, self._label)

    def save(self) -> None:
        self._live.write_back()


def _data(events: Any) -> list[Data]:
    return [event for event in events if isinstance(event, Data)]
