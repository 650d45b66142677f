"""Routing: where what a segment emits goes, worked out once and then run for whole batches.

Segments without state run here and now, behind the one that feeds them; what is left is addressed
to the bucket of a stateful segment or to a sink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import msgspec

from cutwater.errors import InputError, Problem
from cutwater.events import Data
from cutwater.flow import steps as s
from cutwater.flow.by_value import made_of
from cutwater.flow.fusing import Segment
from cutwater.flow.lowering import key_bytes_of, key_function, plain_key_function
from cutwater.order import NO_KEY, bucket_of, canonical, order_bytes, terminated
from cutwater.spark.batches import Batch
from cutwater.spark.job import Job
from cutwater.spark.rows import Outbox, pack_lines

__all__ = ["Emitted", "Sender"]

Emitted = tuple[bytes, bytes, Any, Sequence[Data], int]
"""The order of a cause, the canonical bytes of a key, the key, what was emitted, and the index of
the first of it."""

_Receive = Callable[[Batch], None]

_json = msgspec.json.Encoder().encode
_INDICES = [index.to_bytes(8, "big") for index in range(256)]


class Sender:
    """Addresses what a segment emits, into an outbox."""

    def __init__(self, job: Job, segment: Segment, outbox: Outbox) -> None:
        self._rank = order_bytes((segment.rank,))
        self._is_keyed = segment.placement == "by key"
        self._receivers = [_to_sink(job, n, outbox) for n in job.sinks_after[segment.number]]
        for number, port in job.plan.readers[segment.number]:
            self._receivers.append(_to_segment(job, job.plan.segments[number], port, outbox))

    def values(
        self, causes: Batch, outputs: Sequence[Sequence[Any]], firsts: Sequence[int] | None = None
    ) -> None:
        """Send what each event of a batch caused; it has the time and key of its cause.

        `firsts` are the indices that the outputs of each event are counted from; default: 0.
        """
        if firsts is None and set(map(len, outputs)) == {1}:
            self.one_each(causes, [each[0] for each in outputs])
            return
        rows = [row for row, each in enumerate(outputs) for _ in each]
        counted = [index for each in outputs for index in range(len(each))]
        if firsts is not None:
            counted = [firsts[row] + index for row, index in zip(rows, counted, strict=True)]
        batch = causes.take(rows)
        batch.orders = [
            order + terminated(key) + self._rank + _index(index)
            for order, key, index in zip(batch.orders, batch.key_bytes, counted, strict=True)
        ]
        batch.values = [output for each in outputs for output in each]
        self._deliver(batch)

    def one_each(self, causes: Batch, values: list[Any]) -> None:
        """Send the one value that each event of a batch caused."""
        tail = self._rank + _INDICES[0]
        if self._is_keyed:
            orders = [
                order + terminated(key) + tail
                for order, key in zip(causes.orders, causes.key_bytes, strict=True)
            ]
        else:
            tail = terminated(NO_KEY) + tail
            orders = [order + tail for order in causes.orders]
        self._deliver(replace(causes, orders=orders, values=values))

    def events(self, emitted: Iterable[Emitted], label: int | None) -> None:
        """Send events, each with a time of its own."""
        batch = Batch([], [], [], [], [], label)
        assert batch.keys is not None
        assert batch.times is not None
        for order, key_bytes, key, outputs, first in emitted:
            place = order + terminated(key_bytes) + self._rank
            for index, event in enumerate(outputs, first):
                batch.orders.append(place + _index(index))
                batch.key_bytes.append(key_bytes)
                batch.values.append(event.value)
                batch.keys.append(key)
                batch.times.append(event.time)
        self._deliver(batch)

    def _deliver(self, batch: Batch) -> None:
        if batch.values:
            for receive in self._receivers:
                receive(batch)


def _index(index: int) -> bytes:
    return _INDICES[index] if index < 256 else index.to_bytes(8, "big")


def _to_sink(job: Job, target: int, outbox: Outbox) -> _Receive:
    def receive(batch: Batch) -> None:
        lines = Batch(batch.orders, batch.key_bytes, _lines(batch.values), label=batch.label)
        outbox.post(target, lines, pack_lines)

    return receive


def _lines(values: Sequence[Any]) -> list[bytes]:
    try:
        return [_json(value) + b"\n" for value in values]
    except (TypeError, ValueError, OverflowError, RecursionError):
        return list(map(_line, values))  # which says what failed


def _line(value: Any) -> bytes:
    try:
        return _json(value) + b"\n"
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            Problem(
                "not-json",
                f"{repr(value)[:200]} cannot be written to a sink as JSON: {error}",
                "map it to a dataclass or to builtin values before the sink",
            )
        ) from None


def _to_segment(job: Job, reader: Segment, port: int, outbox: Outbox) -> _Receive:
    onward = (_to_bucket if reader.is_stateful else _through)(job, reader, port, outbox)
    if isinstance(reader.steps[0], s.KeyBy):
        keys_of = _keyed_anew(reader.steps[0])
        return lambda batch: onward(keys_of(batch))
    if reader.placement != "by key":
        home = job.labels[bucket_of(NO_KEY, job.buckets)]
        return lambda batch: onward(_without_keys(batch, home))
    return onward


def _keyed_anew(step: s.KeyBy) -> Callable[[Batch], Batch]:
    quick, careful = plain_key_function(step), key_function(step)

    def keyed(batch: Batch) -> Batch:
        try:
            keys = list(map(quick, batch.values))
            key_bytes = list(map(canonical, keys))
        except (Exception, SystemExit):
            keys = list(map(careful, batch.values))  # which says what failed
            key_bytes = [key_bytes_of(step, key) for key in keys]
        return replace(batch, keys=keys, key_bytes=key_bytes, label=None)

    return keyed


def _without_keys(batch: Batch, home: int) -> Batch:
    return replace(batch, keys=[None] * len(batch), key_bytes=[NO_KEY] * len(batch), label=home)


def _to_bucket(job: Job, reader: Segment, port: int, outbox: Outbox) -> _Receive:
    write, number = job.letters[reader.number].writer(port), reader.number
    return lambda batch: outbox.post(number, batch, write)


def _through(job: Job, reader: Segment, port: int, outbox: Outbox) -> _Receive:
    first = reader.first_index(port)
    sender = Sender(job, reader, outbox)
    if not reader.parts and not first:
        return lambda batch: sender.one_each(batch, batch.values)
    made = made_of([part.step for part in reader.parts])

    def receive(batch: Batch) -> None:
        firsts = list(repeat(first, len(batch))) if first else None
        sender.values(batch, made(batch.values), firsts)

    return receive
