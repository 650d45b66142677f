"""Routes the output of a segment; routes are built once and then run on whole batches.

Stateless segments run in place, right after the segment that feeds them; what they emit is sent to
the bucket of a stateful segment or to a sink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cutwater.events import Data
from cutwater.flow import steps as s
from cutwater.flow.by_value import made_of
from cutwater.flow.fusing import Segment
from cutwater.flow.lowering import key_bytes_of, key_function, plain_key_function
from cutwater.ordering import NO_KEY, canonical_of, order_bytes, terminated
from cutwater.spark.exchange.batch import EventBatch
from cutwater.spark.exchange.columns import Records, record_codec
from cutwater.spark.exchange.envelope import ShuffleWriter
from cutwater.spark.exchange.sink_rows import packing
from cutwater.spark.job.spec import Job
from cutwater.spark.operators.aggregation import Aggregation

__all__ = ["EmittedRow", "Sender"]

EmittedRow = tuple[bytes, bytes, Any, Sequence[Data], int]
"""The order of the cause, the canonical bytes of its key, the key, the events that were emitted,
and the index of the first of them."""

_Receive = Callable[[EventBatch], None]

_INDICES = [index.to_bytes(8, "big") for index in range(256)]


class Sender:
    """Sends the output of a segment to the shuffle."""

    def __init__(self, job: Job, segment: Segment, shuffle: ShuffleWriter) -> None:
        self._rank = order_bytes((segment.rank,))
        self._steps = [part.step for part in segment.parts]
        self._operator = segment.operator
        self._is_keyed = segment.placement == "by key"
        self.is_order_sensitive = job.topology.is_order_sensitive(segment)
        """Does anything downstream need the order of events?"""
        self._receivers = [
            _to_sink(job, n, shuffle) for n in job.topology.sinks_after[segment.number]
        ]
        readers = job.plan.readers[segment.number]
        for number, port in readers:
            self._receivers.append(_to_segment(job, job.plan.segments[number], port, shuffle))
        found = [job.topology.aggregations.get(number) for number, _ in readers]
        fields = [aggregation.numbered_by for aggregation in found if aggregation]
        is_all = len(fields) == len(self._receivers) and None not in fields and not self._steps
        self.numbered: list[str] = fields if is_all else []  # type: ignore[assignment]
        """Fields by which everything that is sent is pre-aggregated: sources dictionary-encode
        them."""

    def through(self, batch: EventBatch, first: int = 0) -> None:
        """Run the steps of a stateless segment on events, and send the outputs.

        The outputs of an event are indexed from `first`.
        """
        if not self._steps and not first:
            self.one_each(batch, batch.values)
            return
        outputs = self._outputs(batch)
        self.values(batch, outputs, [first] * len(batch) if first else None)

    def _outputs(self, batch: EventBatch) -> list[Sequence[Any]]:
        if not any(step.reads_times for step in self._steps):
            return made_of(self._steps)(batch.values)
        step, nothing = self._operator.step, self._operator.initial
        events = map(Data, batch.times or (), batch.values)
        return [[output.value for output in step(nothing, event)[1]] for event in events]

    def values(
        self,
        causes: EventBatch,
        outputs: Sequence[Sequence[Any]],
        firsts: Sequence[int] | None = None,
    ) -> None:
        """Send the outputs of each event of a batch; they have the time and key of their cause.

        `firsts` has, for each event, the index of its first output; None: 0.
        """
        if firsts is None and set(map(len, outputs)) == {1}:
            self.one_each(causes, [each[0] for each in outputs])
            return
        rows = [row for row, each in enumerate(outputs) for _ in each]
        counted = [index for each in outputs for index in range(len(each))]
        if firsts is not None:
            counted = [firsts[row] + index for row, index in zip(rows, counted, strict=True)]
        batch = causes.take(rows)
        self._place(batch, counted)
        self._deliver(replace(batch, values=[output for each in outputs for output in each]))

    def _place(self, batch: EventBatch, indices: Sequence[int]) -> None:
        """Extend the orders of causes to those of outputs, by their indices."""
        if self.is_order_sensitive:
            batch.orders = [
                order + terminated(key) + self._rank + _index(index)
                for order, key, index in zip(batch.orders, batch.key_bytes, indices, strict=True)
            ]

    def records(
        self,
        causes: EventBatch,
        rows: np.ndarray | None,
        records: Records,
        firsts: Sequence[int] | None = None,
    ) -> None:
        """Send records, each caused by the event at its row; `rows` ascend; None: one per event."""
        if rows is None and firsts is None:
            self.one_each(causes, records)
            return
        places = np.arange(len(causes)) if rows is None else rows
        indices = np.arange(len(places)) - np.searchsorted(places, places)
        if firsts is not None:
            indices = indices + np.array(firsts, np.int64)[places]
        batch = causes.take(places.tolist())
        self._place(batch, indices.tolist())
        self._deliver(replace(batch, values=records))

    def one_each(self, causes: EventBatch, values: Sequence[Any]) -> None:
        """Send one value for each event of a batch."""
        tail = self._rank + _INDICES[0]
        if not self.is_order_sensitive:
            orders = causes.orders
        elif self._is_keyed:
            orders = [
                order + terminated(key) + tail
                for order, key in zip(causes.orders, causes.key_bytes, strict=True)
            ]
        else:
            tail = terminated(NO_KEY) + tail
            orders = [order + tail for order in causes.orders]
        self._deliver(replace(causes, orders=orders, values=values))

    def events(self, emitted: Iterable[EmittedRow], label: int | None) -> None:
        """Send events that have times of their own."""
        orders: list[bytes] = []
        key_bytes: list[bytes] = []
        keys: list[Any] = []
        events: list[Data] = []
        for order, canonical_key, key, outputs, first in emitted:
            place = order + terminated(canonical_key) + self._rank
            for index, event in enumerate(outputs, first):
                orders.append(place + _index(index))
                key_bytes.append(canonical_key)
                keys.append(key)
                events.append(event)
        values, times = [event.value for event in events], [event.time for event in events]
        self._deliver(EventBatch(orders, key_bytes, values, keys, times, label))

    def _deliver(self, batch: EventBatch) -> None:
        if len(batch):
            for receive in self._receivers:
                receive(batch)


def _index(index: int) -> bytes:
    return _INDICES[index] if index < 256 else index.to_bytes(8, "big")


def _to_sink(job: Job, target: int, shuffle: ShuffleWriter) -> _Receive:
    if job.topology.shows_records:
        return _to_frame(job, target, shuffle)

    pack = packing(job, target)
    return lambda batch: shuffle.post(target, batch, pack)


def _to_frame(job: Job, target: int, shuffle: ShuffleWriter) -> _Receive:
    codec = record_codec(job.addresses.type_of_sink(target))

    def pack(batch: EventBatch) -> bytes:
        return codec.encode(Records.of(codec.layout, batch.values))

    return lambda batch: shuffle.post(target, batch, pack)


def _to_segment(job: Job, reader: Segment, port: int, shuffle: ShuffleWriter) -> _Receive:
    aggregation = job.topology.aggregations.get(reader.number)
    if aggregation and aggregation.is_folded_early:
        return _to_fold(aggregation, shuffle)
    onward = (_to_bucket if reader.is_stateful else _through)(job, reader, port, shuffle)
    if isinstance(reader.steps[0], s.KeyBy):
        keys_of = _keyed_anew(reader.steps[0])
        return lambda batch: onward(keys_of(batch))
    if reader.placement != "by key":
        return lambda batch: onward(_without_keys(batch, job.addresses.keyless_label))
    return onward


def _keyed_anew(step: s.KeyBy) -> Callable[[EventBatch], EventBatch]:
    quick, careful = plain_key_function(step), key_function(step)

    def keyed(batch: EventBatch) -> EventBatch:
        values = batch.values
        columns = values.fields(step.fields) if isinstance(values, Records) else None
        try:
            keys = columns or list(map(quick, values))
            key_bytes = canonical_of(keys)
        except (Exception, SystemExit):
            keys = list(map(careful, batch.values))  # raises with the cause
            key_bytes = [key_bytes_of(step, key) for key in keys]
        return replace(batch, keys=keys, key_bytes=key_bytes, label=None)

    return keyed


def _without_keys(batch: EventBatch, home: int) -> EventBatch:
    return replace(batch, keys=[None] * len(batch), key_bytes=[NO_KEY] * len(batch), label=home)


def _to_bucket(job: Job, reader: Segment, port: int, shuffle: ShuffleWriter) -> _Receive:
    write = job.codecs.event_codecs[reader.number].writer(port)
    return lambda batch: shuffle.post(reader.number, batch, write)


def _to_fold(aggregation: Aggregation, shuffle: ShuffleWriter) -> _Receive:
    step = aggregation.segment.steps[0]
    assert isinstance(step, s.KeyBy)
    keys_of = _keyed_anew(step)

    def receive(batch: EventBatch) -> None:
        folded = aggregation.folded_by_number(batch)
        if folded is None:
            folded = aggregation.lifted(keys_of(batch))
        shuffle.gather(aggregation.segment.number, folded, aggregation)

    return receive


def _through(job: Job, reader: Segment, port: int, shuffle: ShuffleWriter) -> _Receive:
    first = reader.first_index(port)
    sender = Sender(job, reader, shuffle)
    return lambda batch: sender.through(batch, first)
