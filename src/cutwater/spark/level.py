"""A level: all stateful segments of one depth in one Spark operator, one group per bucket.

Rows that are addressed to a deeper level or to a sink pass unchanged.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cutwater.events import Data
from cutwater.flow.fusing import Segment
from cutwater.flow.steps import Apply
from cutwater.records import Codec
from cutwater.spark.buckets import BucketStates, StateStore
from cutwater.spark.job import Job, load_job, speaking
from cutwater.spark.routing import sender
from cutwater.spark.rows import ROW_SCHEMA, Entry, Outbox, unpack

__all__ = ["Level"]


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
        here = {segment.number: segment for segment in job.levels[self._level]}
        mail: dict[int, list[Entry]] = {}
        for row in rows:
            if row.target in here:
                mail.setdefault(row.target, []).extend(unpack(bytes(row.body)))
            else:
                yield row
        if not mail:
            return
        states = BucketStates(self._store, job.query_id, self._level, label)
        outbox = Outbox()
        for number in sorted(mail):
            _run(job, here[number], mail[number], states, outbox)
            for parcel in outbox.take_closed():
                yield _row(parcel)
        states.save()
        for parcel in outbox.take_all():
            yield _row(parcel)

    def close(self) -> None:
        pass


def _row(parcel: tuple[int, int, int, bytes]) -> Row:
    return Row(**dict(zip(ROW_SCHEMA.names, parcel, strict=True)))


def _run(
    job: Job, segment: Segment, entries: list[Entry], states: BucketStates, outbox: Outbox
) -> None:
    if job.permute is not None:
        random.Random(job.permute).shuffle(entries)
    entries.sort(key=itemgetter(0))
    decode = job.codecs[segment.number].decode
    step = segment.operator.step
    send = sender(job, segment, outbox)
    live = _LiveStates(segment, states)
    for order, key, _time, payload in entries:
        state, outputs = step(live.get(key), Data(None, decode(payload)))
        live.states[key] = state
        send(order, key, outputs)
    live.write_back()


class _LiveStates:
    """Decoded states of the keys an epoch touches: decoded once, encoded once."""

    def __init__(self, segment: Segment, kept: BucketStates) -> None:
        self._kept = kept
        self._initial = segment.operator.initial
        self._is_single = len(segment.parts) == 1
        self._codecs = [
            (i, step.name, Codec(step.task.state_type))
            for i, (step, _) in enumerate(segment.parts)
            if isinstance(step, Apply)
        ]
        self.states: dict[bytes, Any] = {}

    def get(self, key: bytes) -> Any:
        """The state of a key, as the segment's operator takes it."""
        if key in self.states:
            return self.states[key]
        parts = [self._initial] if self._is_single else list(self._initial)
        for i, name, codec in self._codecs:
            encoded = self._kept.get(name, key)
            if encoded is not None:
                parts[i] = codec.decode(encoded)
        return parts[0] if self._is_single else tuple(parts)

    def write_back(self) -> None:
        """Give the bucket what became of the states."""
        for key, state in self.states.items():
            parts = [state] if self._is_single else state
            for i, name, codec in self._codecs:
                part = parts[i]
                self._kept.put(name, key, None if part is None else codec.encode(part))
