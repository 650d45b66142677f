"""Routing: where what a segment emits goes, worked out once and then run for every event.

Segments without state run here and now, behind the one that feeds them; what is left is addressed
to the bucket of a stateful segment or to a sink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from cutwater.errors import InputError, Problem
from cutwater.events import Data
from cutwater.flow.fusing import Segment
from cutwater.flow.lowering import key_bytes_of
from cutwater.order import NO_KEY, bucket_of, order_bytes, terminated
from cutwater.spark.job import Job
from cutwater.spark.rows import Outbox

__all__ = ["Send", "sender"]

Send = Callable[[bytes, bytes, Sequence[Any]], None]
"""``(order of the cause, canonical key, outputs)``."""

_Receive = Callable[[bytes, bytes, Any], None]

_json = msgspec.json.Encoder().encode


def sender(job: Job, segment: Segment, outbox: Outbox) -> Send:
    """The function that addresses what a segment emits, into an outbox."""
    receivers = [_to_sink(job, target, outbox) for target in job.sinks_after[segment.number]]
    for number, _port in job.plan.readers[segment.number]:
        receivers.append(_to_segment(job, job.plan.segments[number], outbox))
    rank = order_bytes((segment.rank,))

    def send(order: bytes, key: bytes, outputs: Sequence[Any]) -> None:
        for index, event in enumerate(outputs):
            place = order + terminated(key) + rank + index.to_bytes(8, "big")
            for receive in receivers:
                receive(place, key, event.value)

    return send


def _to_sink(job: Job, target: int, outbox: Outbox) -> _Receive:
    labels, buckets = job.labels, job.buckets

    def receive(order: bytes, key: bytes, value: Any) -> None:
        try:
            line = _json(value) + b"\n"
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(_not_json(value, error)) from None
        outbox.add(labels[bucket_of(key, buckets)], target, (order, key, None, line))

    return receive


def _not_json(value: Any, error: Exception) -> Problem:
    return Problem(
        "not-json",
        f"{repr(value)[:200]} cannot be written to a sink as JSON: {error}",
        "map it to a dataclass or to builtin values before the sink",
    )


def _to_segment(job: Job, reader: Segment, outbox: Outbox) -> _Receive:
    key_of, is_keyed, first = reader.key, reader.placement == "by key", reader.steps[0]
    make = _to_bucket if reader.is_stateful else _through
    onward = make(job, reader, outbox)

    def receive(order: bytes, key: bytes, value: Any) -> None:
        if key_of is not None:
            key = key_bytes_of(first, key_of(value))
        elif not is_keyed:
            key = NO_KEY
        onward(order, key, value)

    return receive


def _to_bucket(job: Job, reader: Segment, outbox: Outbox) -> _Receive:
    labels, buckets, number = job.labels, job.buckets, reader.number
    encode = job.codecs[number].encode

    def receive(order: bytes, key: bytes, value: Any) -> None:
        outbox.add(labels[bucket_of(key, buckets)], number, (order, key, None, encode(value)))

    return receive


def _through(job: Job, reader: Segment, outbox: Outbox) -> _Receive:
    step, initial = reader.operator.step, reader.operator.initial
    send = sender(job, reader, outbox)

    def receive(order: bytes, key: bytes, value: Any) -> None:
        send(order, key, step(initial, Data(None, value))[1])

    return receive
