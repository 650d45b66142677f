"""Letters: how an event is written into a row, and read where it arrives.

The payload is the value, encoded for the segment it goes to. Where a segment needs more, it gets
more: a time, the key itself, or by which of its inputs an event comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from cutwater.codec import Codec
from cutwater.events import Data
from cutwater.flow.forms import key_kept_as, time_kept_as
from cutwater.flow.fusing import Plan, Segment
from cutwater.flow.inference import StreamType
from cutwater.flow.steps import Join
from cutwater.spark.needs import Needs

__all__ = ["Letters", "Read", "Write", "values_of"]

Write = Callable[[Any, Data], tuple[bytes | None, bytes]]
"""``(key, event) -> (time, payload)``."""
Read = Callable[[bytes | None, bytes], tuple[Any, Data]]
"""``(time, payload) -> (key, event)``."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(tuple[int, bytes, bytes]).decode


def values_of(plan: Plan, segment: Segment) -> list[Any]:
    """The type of what comes by each input; a merge takes all as one."""
    if isinstance(segment.steps[0], Join):
        return [plan.segments[edge.segment].output.value for edge in segment.inputs]
    return [segment.given.value] * len(segment.inputs)


class Letters:
    """How the events that come to one stateful segment are written and read."""

    def __init__(self, plan: Plan, segment: Segment, needs: Needs) -> None:
        self._segment = segment
        self._values = [Codec(tp) for tp in values_of(plan, segment)]
        is_timed = segment.number in needs.times
        self.time = Codec(time_kept_as(segment.given.time)) if is_timed else None
        """How times are encoded, if events carry them."""
        self._minds_keys = segment.number in needs.keys
        self._says_port = segment.reads_twice or any(edge.side for edge in segment.inputs)
        self.is_plain = not is_timed and not self._minds_keys and not self._says_port
        """Is the payload of a value all there is to a letter?"""
        inputs: list[StreamType] = [plan.segments[edge.segment].output for edge in segment.inputs]
        self.key = Codec(key_kept_as(inputs if segment.key is None else [segment.output]))
        """How keys are encoded."""

    @property
    def _sends_keys(self) -> bool:
        return self._minds_keys and self._segment.key is None

    def writer(self, port: int) -> Write:
        """Writes the events that come by one input."""
        encode, time = self._values[port].encode, self.time
        encode_time = time.encode if time else (lambda _time: None)
        if not self._says_port and not self._sends_keys:
            return lambda _key, event: (encode_time(event.time), encode(event.value))
        encode_key = self.key.encode if self._sends_keys else (lambda _key: b"")

        def write(key: Any, event: Data) -> tuple[bytes | None, bytes]:
            body = (port, encode_key(key), encode(event.value))
            return encode_time(event.time), _pack(body)

        return write

    def encoder(self, port: int) -> Callable[[Any], bytes]:
        """Writes the values that come by one input, of letters that are plain."""
        return self._values[port].encode

    def decoder(self) -> Callable[[bytes], Any]:
        """Reads what is written in letters that are plain."""
        return self._values[0].decode

    def reader(self) -> Read:
        """Reads what the writers of all inputs wrote."""
        decode, time, key_of = self._values[0].decode, self.time, self._segment.key
        decode_time: Any = time.decode if time else (lambda _time: None)
        if self._says_port or self._sends_keys:
            return self._reader_of_bodies(decode_time)
        if self._minds_keys and key_of is not None:
            return lambda time, payload: _keyed(key_of, Data(decode_time(time), decode(payload)))
        return lambda time, payload: (None, Data(decode_time(time), decode(payload)))

    def port_of(self, payload: bytes) -> int:
        """By which input a letter came, where it says so."""
        return _unpack(payload)[0] if self._says_port else 0

    def _reader_of_bodies(self, decode_time: Any) -> Read:
        values = [codec.decode for codec in self._values]
        sides = [edge.side or (lambda time: time) for edge in self._segment.inputs]
        decode_key = self.key.decode if self._sends_keys else (lambda _key: None)

        def read(time: bytes | None, payload: bytes) -> tuple[Any, Data]:
            port, key, value = _unpack(payload)
            return decode_key(key), Data(sides[port](decode_time(time)), values[port](value))

        return read


def _keyed(key_of: Callable[[Any], Any], event: Data) -> tuple[Any, Data]:
    return key_of(event.value), event
