"""Routing: where what a segment emits goes, worked out once and then run for every event.

Segments without state run here and now, behind the one that feeds them; what is left is addressed
to the bucket of a stateful segment or to a sink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from cutwater.errors import InputError, Problem
from cutwater.events import Data
from cutwater.flow.fusing import Segment
from cutwater.flow.lowering import key_bytes_of
from cutwater.order import NO_KEY, bucket_of, order_bytes, terminated
from cutwater.spark.job import Job
from cutwater.spark.rows import Outbox

__all__ = ["Send", "sender"]


class Send(Protocol):
    """Addresses what a segment emits."""

    def __call__(
        self, order: bytes, key_bytes: bytes, key: Any, outputs: Sequence[Any], first: int = 0
    ) -> None:
        """Send what a cause, by its order, made one key emit; outputs count from `first`."""


_Receive = Callable[[bytes, bytes, Any, Data], None]

_json = msgspec.json.Encoder().encode


def sender(job: Job, segment: Segment, outbox: Outbox) -> Send:
    """The function that addresses what a segment emits, into an outbox."""
    receivers = [_to_sink(job, target, outbox) for target in job.sinks_after[segment.number]]
    for number, port in job.plan.readers[segment.number]:
        receivers.append(_to_segment(job, job.plan.segments[number], port, outbox))
    rank = order_bytes((segment.rank,))

    def send(
        order: bytes, key_bytes: bytes, key: Any, outputs: Sequence[Any], first: int = 0
    ) -> None:
        for index, event in enumerate(outputs, first):
            place = order + terminated(key_bytes) + rank + index.to_bytes(8, "big")
            for receive in receivers:
                receive(place, key_bytes, key, event)

    return send


def _to_sink(job: Job, target: int, outbox: Outbox) -> _Receive:
    labels, buckets = job.labels, job.buckets

    def receive(order: bytes, key_bytes: bytes, _key: Any, event: Data) -> None:
        try:
            line = _json(event.value) + b"\n"
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(_not_json(event.value, error)) from None
        label = labels[bucket_of(key_bytes, buckets)]
        outbox.add(label, target, (order, key_bytes, None, line))

    return receive


def _not_json(value: Any, error: Exception) -> Problem:
    return Problem(
        "not-json",
        f"{repr(value)[:200]} cannot be written to a sink as JSON: {error}",
        "map it to a dataclass or to builtin values before the sink",
    )


def _to_segment(job: Job, reader: Segment, port: int, outbox: Outbox) -> _Receive:
    key_of, is_keyed, first = reader.key, reader.placement == "by key", reader.steps[0]
    make = _to_bucket if reader.is_stateful else _through
    onward = make(job, reader, port, outbox)

    def receive(order: bytes, key_bytes: bytes, key: Any, event: Data) -> None:
        if key_of is not None:
            key = key_of(event.value)
            key_bytes = key_bytes_of(first, key)
        elif not is_keyed:
            key, key_bytes = None, NO_KEY
        onward(order, key_bytes, key, event)

    return receive


def _to_bucket(job: Job, reader: Segment, port: int, outbox: Outbox) -> _Receive:
    labels, buckets, number = job.labels, job.buckets, reader.number
    letters = job.letters[number]
    encode, write = letters.encoder(port), letters.writer(port)

    def receive_plain(order: bytes, key_bytes: bytes, _key: Any, event: Data) -> None:
        label = labels[bucket_of(key_bytes, buckets)]
        outbox.add(label, number, (order, key_bytes, None, encode(event.value)))

    def receive(order: bytes, key_bytes: bytes, key: Any, event: Data) -> None:
        label = labels[bucket_of(key_bytes, buckets)]
        outbox.add(label, number, (order, key_bytes, *write(key, event)))

    return receive_plain if letters.is_plain else receive


def _through(job: Job, reader: Segment, port: int, outbox: Outbox) -> _Receive:
    step, initial = reader.operator.step, reader.operator.initial
    first = reader.first_index(port)
    send = sender(job, reader, outbox)

    def receive(order: bytes, key_bytes: bytes, key: Any, event: Data) -> None:
        send(order, key_bytes, key, step(initial, event)[1], first)

    return receive
