"""The work of one segment in one bucket: an epoch's data, its border, its watermark, the end.

What comes after the data has the order of `semantics.simulator`: an epoch's border and watermark
come after all sources, segment by segment in the order of their stages, and key by key.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from cutwater.events import Data, Watermark
from cutwater.flow.fusing import Segment
from cutwater.order import AFTER_DATA, order_bytes
from cutwater.spark.buckets import BucketStates
from cutwater.spark.job import Job
from cutwater.spark.live import LiveStates
from cutwater.spark.routing import sender
from cutwater.spark.rows import Entry, Outbox

__all__ = ["SegmentWork"]


class SegmentWork:
    """One segment at work on one bucket."""

    def __init__(self, job: Job, segment: Segment, bucket: BucketStates, outbox: Outbox) -> None:
        self._job = job
        self._segment = segment
        self._operator = segment.operator
        self._live = LiveStates(job.storages[segment.number], bucket)
        self._send = sender(job, segment, outbox)

    def data(self, entries: list[Entry]) -> None:
        """What the events of an epoch cause, in their order."""
        if self._job.permute is not None:
            random.Random(self._job.permute).shuffle(entries)
        if self._job.letters[self._segment.number].is_plain and self._operator.start is None:
            self._plain(entries)
        else:
            self._full(entries)

    def _plain(self, entries: list[Entry]) -> None:
        """Events that are nothing but values, where most flows spend their time."""
        entries.sort(key=itemgetter(0))
        decode = self._job.letters[self._segment.number].decoder()
        step, send, get, states = self._operator.step, self._send, self._live.get, self._live.states
        for order, key_bytes, _time, payload in entries:
            state, outputs = step(get(key_bytes, None), Data(None, decode(payload)))
            states[key_bytes] = state
            send(order, key_bytes, None, outputs)

    def _full(self, entries: list[Entry]) -> None:
        """Events with times, keys or copies; copies follow one another input by input."""
        letters = self._job.letters[self._segment.number]
        read, port_of, has_copies = letters.reader(), letters.port_of, self._segment.reads_twice
        entries.sort(key=_copies_in_order(port_of) if has_copies else itemgetter(0))
        for order, key_bytes, time, payload in entries:
            key, event = read(time, payload)
            state, outputs = self._operator.step(self._live.get(key_bytes, key), event)
            self._live.put(key_bytes, key, state)
            first = self._segment.first_index(port_of(payload)) if has_copies else 0
            self._send(order, key_bytes, key, outputs, first)

    def border(self) -> None:
        """What the end of the epoch causes, at the keys it touched."""
        if self._operator.border is None:
            return
        order = order_bytes((AFTER_DATA, self._segment.stage, 0))
        for key_bytes in self._live.touched():
            key = self._live.key(key_bytes)
            state, outputs = self._operator.border(self._live.get(key_bytes, key))
            self._live.put(key_bytes, key, state)
            self._send(order, key_bytes, key, outputs)

    def watermark(self, time: Any) -> None:
        """What a watermark causes, at the keys for which it can matter."""
        order = order_bytes((AFTER_DATA, self._segment.stage, 1))
        for key_bytes in self._live.due(time):
            key = self._live.key(key_bytes)
            state, outputs = self._operator.step(self._live.get(key_bytes, key), Watermark(time))
            self._live.put(key_bytes, key, state)
            self._send(order, key_bytes, key, [e for e in outputs if isinstance(e, Data)])

    def finish(self) -> None:
        """What the end of the input causes, at all keys."""
        order = order_bytes((AFTER_DATA + 1, self._segment.stage, 0))
        for key_bytes in self._live.all():
            key = self._live.key(key_bytes)
            outputs = self._operator.finish(self._live.get(key_bytes, key))
            self._send(order, key_bytes, key, [e for e in outputs if isinstance(e, Data)])

    def save(self) -> None:
        """Give the bucket what became of the states."""
        self._live.write_back()


def _copies_in_order(port_of: Callable[[bytes], int]) -> Callable[[Entry], tuple[bytes, int]]:
    return lambda entry: (entry[0], port_of(entry[3]))
