"""The lines of a loop's log: for each event its order, its time if anyone asks, its value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from cutwater.codec import Codec
from cutwater.flow.state_snapshots import time_kept_as
from cutwater.flow.steps import FromLog
from cutwater.ordering import NO_KEY
from cutwater.spark.exchange.batch import Batch

__all__ = ["LogLines", "orders_in"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[bytes, bytes | None, bytes]).decode
_peek = msgspec.json.Decoder(tuple[bytes, msgspec.Raw, msgspec.Raw]).decode


class LogLines:
    """How the events of one log are written and read."""

    def __init__(self, log: FromLog, is_timed: bool) -> None:
        self._value = Codec(log.type)
        self._time = Codec(time_kept_as(log.stream.time)) if is_timed else None

    def written(self, batch: Batch) -> list[bytes]:
        """A line for each event."""
        values = map(self._value.encode, batch.values)
        times: Iterable[bytes | None] = [None] * len(batch)
        if self._time is not None:
            times = map(self._time.encode, batch.times or ())
        rows = zip(batch.orders, times, values, strict=True)
        return [_encode(row) + b"\n" for row in rows]

    def read(self, lines: Sequence[bytes], label: int) -> Batch:
        """The events of lines, without keys, in the bucket with this label."""
        rows = list(map(_decode, lines))
        decode = self._value.decode
        times = None
        if self._time is not None:
            times = [self._time.decode(time) for _, time, _ in rows if time is not None]
        orders = [order for order, _, _ in rows]
        values = [decode(value) for _, _, value in rows]
        return Batch(orders, [NO_KEY] * len(rows), values, times=times, label=label)


def orders_in(lines: Iterable[bytes]) -> list[bytes]:
    """The orders of events, of which nothing else is looked at."""
    return [_peek(line)[0] for line in lines]
