"""Encodes the events for a segment as the body of a row, and decodes them where they arrive.

A body holds values, encoded together for the segment that receives them, and times and keys if the
segment needs them. All events of a body come through one input of the segment.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import msgspec

from cutwater.annotations import typename
from cutwater.codec import Codec
from cutwater.errors import Problem, StepError
from cutwater.flow.fusing import Plan, Segment
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.state_snapshots import key_kept_as, time_kept_as
from cutwater.spark.exchange.batch import EventBatch
from cutwater.spark.exchange.columns import RecordCodec, Records
from cutwater.spark.job.column_requirements import ColumnRequirements

__all__ = ["EventCodec"]

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(
    tuple[int, bytes, list[bytes], list[bytes], bool, bytes, bytes | None, bytes | None]
).decode
"""Input, least order, orders, canonical keys, whether values are columns, values, times, keys."""
_peek = msgspec.msgpack.Decoder(tuple[int, bytes, *[msgspec.Raw] * 6]).decode  # type: ignore[misc]


class EventCodec:
    """Encodes and decodes the events for one stateful segment."""

    def __init__(self, plan: Plan, segment: Segment, requirements: ColumnRequirements) -> None:
        self._segment = segment
        self._types = [edge.value for edge in segment.inputs]
        self._values = [_many(tp) for tp in self._types]
        self._records = [cache(partial(RecordCodec, tp)) for tp in self._types]
        is_timed = segment.number in requirements.times
        time = time_kept_as(segment.input_type.time)
        self.time = Codec(time) if is_timed else None
        """The codec of times; None if events do not carry them."""
        self._times = _many(time) if is_timed else None
        self._uses_keys = segment.number in requirements.keys
        inputs: list[StreamType] = [plan.segments[edge.segment].output for edge in segment.inputs]
        key = key_kept_as(inputs if segment.key is None else [segment.output])
        self.key = Codec(key)
        """The codec of keys."""
        self._keys = _many(key) if self._uses_keys and segment.key is None else None

    def writer(self, port: int) -> Callable[[EventBatch], bytes]:
        """A function that encodes the events for one input."""
        encode, times, keys = self._values[port].encode, self._times, self._keys
        records, tp = self._records[port], self._types[port]

        def write(batch: EventBatch) -> bytes:
            values = batch.values
            if isinstance(values, Records) and values.layout.type is tp:
                body = True, records().encode(values)
            else:
                body = False, encode(values if isinstance(values, list) else list(values))
            return _pack(
                (
                    port,
                    min(batch.orders, default=b""),
                    batch.orders,
                    batch.key_bytes,
                    *body,
                    times and times.encode(batch.times),
                    keys and keys.encode(batch.keys),
                )
            )

        return write

    def read(self, body: bytes) -> tuple[int, EventBatch]:
        """The input of the events in a body, and the events.

        Raises `StepError` if a value does not fit its annotation.
        """
        port, _, orders, key_bytes, is_columns, values, times, keys = _unpack(body)
        decode = self._records[port]().decode if is_columns else self._values[port].decode
        try:
            batch = EventBatch(orders, key_bytes, decode(values))
        except (msgspec.ValidationError, ValueError) as error:
            raise StepError(self._not_declared(port, error)) from None
        if self._times and times is not None:
            side = self._segment.inputs[port].side
            decoded = self._times.decode(times)
            batch.times = [side(time) for time in decoded] if side else decoded
        if self._keys and keys is not None:
            batch.keys = self._keys.decode(keys)
        return port, batch

    def _not_declared(self, port: int, error: Exception) -> Problem:
        sender, reader = self._segment.inputs[port].sender, self._segment.steps[0]
        return Problem(
            "not-as-annotated",
            f"{sender.title} sends {reader.title} a value that does not fit "
            f"{typename(self._types[port])}, which its annotation declares: {error}",
            "correct what the function returns, or its annotation",
        )

    @staticmethod
    def least_order(body: bytes) -> bytes:
        """The least order of the events, without decoding them; empty: they have no orders."""
        found: bytes = _peek(body)[1]
        return found

    def keys_of(self, batch: EventBatch) -> list[Any] | None:
        """The keys of events; None if the segment does not need them."""
        if batch.keys is None and self._uses_keys and self._segment.key is not None:
            return list(map(self._segment.key, batch.values))
        return batch.keys


def _many(tp: Any) -> Codec:
    """The codec for a list of values of a type."""
    return Codec(list[tp])
