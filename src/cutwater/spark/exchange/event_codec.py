"""Letters: how the events for a segment are written into a body, and read where they arrive.

A body holds values, encoded for the segment they go to, in one piece. Where a segment needs more,
it gets more: times, the keys themselves. All events of a body came by one input.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import msgspec

from cutwater.annotations import describe
from cutwater.codec import Codec
from cutwater.errors import Problem, StepError
from cutwater.flow.fusing import Plan, Segment
from cutwater.flow.inference import StreamType
from cutwater.flow.state_snapshots import key_kept_as, time_kept_as
from cutwater.spark.exchange.batch import Batch
from cutwater.spark.exchange.columns import RecordCodec, Records
from cutwater.spark.job.column_requirements import Needs

__all__ = ["Letters"]

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(
    tuple[int, bytes, list[bytes], list[bytes], bool, bytes, bytes | None, bytes | None]
).decode
"""Input, least order, orders, canonical keys, whether values are columns, values, times, keys."""
_peek = msgspec.msgpack.Decoder(tuple[int, bytes, *[msgspec.Raw] * 6]).decode  # type: ignore[misc]


class Letters:
    """How the events that come to one stateful segment are written and read."""

    def __init__(self, plan: Plan, segment: Segment, needs: Needs) -> None:
        self._segment = segment
        self._types = [edge.value for edge in segment.inputs]
        self._values = [_many(tp) for tp in self._types]
        self._records = [cache(partial(RecordCodec, tp)) for tp in self._types]
        is_timed = segment.number in needs.times
        time = time_kept_as(segment.given.time)
        self.time = Codec(time) if is_timed else None
        """How a time is encoded, if events carry them."""
        self._times = _many(time) if is_timed else None
        self._minds_keys = segment.number in needs.keys
        inputs: list[StreamType] = [plan.segments[edge.segment].output for edge in segment.inputs]
        key = key_kept_as(inputs if segment.key is None else [segment.output])
        self.key = Codec(key)
        """How a key is encoded."""
        self._keys = _many(key) if self._minds_keys and segment.key is None else None

    def writer(self, port: int) -> Callable[[Batch], bytes]:
        """Writes the events that come by one input."""
        encode, times, keys = self._values[port].encode, self._times, self._keys
        records, tp = self._records[port], self._types[port]

        def write(batch: Batch) -> bytes:
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

    def read(self, body: bytes) -> tuple[int, Batch]:
        """By which input the events of a body came, and the events."""
        port, _, orders, key_bytes, is_columns, values, times, keys = _unpack(body)
        decode = self._records[port]().decode if is_columns else self._values[port].decode
        try:
            batch = Batch(orders, key_bytes, decode(values))
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
            f"{sender.title} sends {reader.title} something else than "
            f"{describe(self._types[port])}, which its annotation declares: {error}",
            "correct what the function returns, or its annotation",
        )

    @staticmethod
    def least_order(body: bytes) -> bytes:
        """The least order of the events, found without decoding them; empty: they have none."""
        found: bytes = _peek(body)[1]
        return found

    def keys_of(self, batch: Batch) -> list[Any] | None:
        """The keys of events, if the segment is given them."""
        if batch.keys is None and self._minds_keys and self._segment.key is not None:
            return list(map(self._segment.key, batch.values))
        return batch.keys


def _many(tp: Any) -> Codec:
    """How many values of a type are encoded together."""
    return Codec(list[tp])
