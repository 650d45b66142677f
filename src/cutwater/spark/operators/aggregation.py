"""The work of a segment that is a running aggregate: input, state and output are columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from cutwater.annotations import fields_of, members, plain_type
from cutwater.codec import Codec
from cutwater.flow import steps as s
from cutwater.flow.fusing import Segment
from cutwater.ordering import AFTER_DATA, canonical_of, order_bytes
from cutwater.spark.exchange.batch import EventBatch, joined
from cutwater.spark.exchange.columns import Records, number_keys, objects
from cutwater.spark.operators.aggregate_columns import ColumnAggregate, column_aggregate
from cutwater.spark.state.table import StateColumn, StateTable
from cutwater.vectors import Keys, Layout

__all__ = ["Aggregation", "aggregation_of"]

_KEY = "key"
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(tuple[list[bytes], bytes, list[bytes]]).decode


@dataclass(frozen=True)
class Aggregation:
    """Running aggregates over whole columns; made once per job."""

    segment: Segment
    step: s.AggregateAll
    aggregates: tuple[ColumnAggregate, ...]
    is_folded_early: bool
    """Are the values of a key pre-aggregated before the shuffle?"""

    @property
    def is_per_epoch(self) -> bool:
        """Is a record emitted once per epoch, not after each event?"""
        return self.step.emit == "epoch"

    @cached_property
    def columns(self) -> dict[str, StateColumn]:
        """The columns of the state."""
        codec = self._key_codec
        kept = {
            name: StateColumn(kind)  # type: ignore[arg-type]
            for a in self.aggregates
            for name, kind in a.columns.items()
        }
        return {_KEY: StateColumn("object", codec.encode, codec.decode), **kept}

    def converted(self, kept: dict[str, Any]) -> dict[str, list[Any]]:
        """Convert the state of an earlier flow, whose fields were of other kinds."""
        return {name: kept[name] for name in self.columns}

    @cached_property
    def layout(self) -> Layout:
        """The layout of the emitted records as columns."""
        return Layout.of(self.segment.output.value)

    @cached_property
    def _given(self) -> Layout:
        return Layout.of(self.segment.input_type.value)

    @cached_property
    def _key_codec(self) -> Codec:
        tp = self.segment.output.key_type
        return Codec(list[tp])  # type: ignore[valid-type]

    # --- before the exchange -------------------------------------------------------------------

    def lifted(self, batch: EventBatch) -> EventBatch:
        """The state of each event alone, ready to be packed; raises if a key cannot be encoded."""
        assert batch.keys is not None
        columns = {_KEY: objects(batch.keys)}
        self.columns[_KEY].to_bytes(columns[_KEY])
        for aggregate, lifted in self._lifted(batch):
            columns |= dict(zip(aggregate.columns, lifted, strict=True))
        return EventBatch([], batch.key_bytes, Records(self._partial, columns), label=batch.label)

    @property
    def numbered_by(self) -> str | None:
        """The field that is the key, if one is: dictionary-encoding it encodes the keys."""
        step = self.segment.steps[0]
        if not (self.is_folded_early and isinstance(step, s.KeyBy) and len(step.fields) == 1):
            return None
        return step.fields[0]

    def folded_by_number(self, batch: EventBatch) -> EventBatch | None:
        """One state per key, from the dictionary-encoded key field; None if it is not encoded."""
        values, field = batch.values, self.numbered_by
        if not isinstance(values, Records) or field is None or field not in values.numberings:
            return None
        numbering = values.numberings[field]
        found = canonical_of(numbering.values)
        keys = Keys(numbering.of, len(found))
        return self._folded(batch, found, keys, objects(numbering.values))

    def folded(self, batches: Sequence[EventBatch]) -> EventBatch:
        """One state per key: of all its events in batches of `lifted` or folded states."""
        batch = joined(batches)
        found, of = number_keys(batch.key_bytes)
        keys = Keys(of, len(found))
        names = self._names(batch, keys.first(np.arange(len(batch))))
        return replace(self._folded(batch, found, keys, names), label=batch.label)

    def _folded(self, batch: EventBatch, found: list[bytes], keys: Keys, names: Any) -> EventBatch:
        columns = {_KEY: names}
        for aggregate, lifted in self._lifted(batch):
            zeros = [np.zeros(len(found), column.dtype) for column in lifted]
            kept = aggregate.folded(keys, lifted, zeros, np.ones(len(found), bool))
            columns |= dict(zip(aggregate.columns, kept, strict=True))
        return EventBatch([], found, Records(self._partial, columns))

    def pack(self, batch: EventBatch) -> bytes:
        """States of keys as a body."""
        assert isinstance(batch.values, Records)
        columns = batch.values.columns
        kept = [column.to_bytes(columns[name]) for name, column in self.columns.items()]
        return _pack((batch.key_bytes, kept[0], kept[1:]))

    def unpack(self, bodies: Sequence[bytes]) -> EventBatch:
        """The states in bodies."""
        return joined(map(self._unpacked, bodies))

    def _unpacked(self, body: bytes) -> EventBatch:
        key_bytes, names, kept = _unpack(body)
        parts = zip(self.columns.items(), [names, *kept], strict=True)
        columns = {name: column.from_bytes(data) for (name, column), data in parts}
        return EventBatch([], key_bytes, Records(self._partial, columns))

    @cached_property
    def _partial(self) -> Layout:
        return Layout(Aggregation, {name: c.kind for name, c in self.columns.items()}, {})

    # --- in a bucket ---------------------------------------------------------------------------

    def work(self, batch: EventBatch, table: StateTable, label: int) -> EventBatch:
        """The output of events; updates the table."""
        found, of = number_keys(batch.key_bytes)
        keys = Keys(of, len(found))
        slots = table.slots(found)
        is_new = slots < 0
        if is_new.any():
            new = np.flatnonzero(is_new)
            slots[is_new] = table.add([found[i] for i in new.tolist()])
            names = self._names(batch, keys.first(np.arange(len(batch)))[new])
            table.write(slots[is_new], {_KEY: names})
        before = table.read(slots)
        kept: dict[str, Any] = {}
        running: dict[str, Any] = {}
        for aggregate, lifted in self._lifted(batch):
            start = [before[name] for name in aggregate.columns]
            if self.is_per_epoch:
                after = aggregate.folded(keys, lifted, start, is_new)
            else:
                each = aggregate.running(keys, lifted, start, is_new)
                running |= dict(zip(aggregate.columns, each, strict=True))
                after = [keys.last(column) for column in each]
            kept |= dict(zip(aggregate.columns, after, strict=True))
        table.write(slots, kept)
        if self.is_per_epoch:
            return self._per_epoch(batch, found, keys, self._records(before[_KEY], kept), label)
        records = self._records(before[_KEY][of], running)
        return replace(batch, values=records, keys=self._keys(records), label=label)

    def _per_epoch(
        self, batch: EventBatch, found: list[bytes], keys: Keys, records: Records, label: int
    ) -> EventBatch:
        """The output at the end of the epoch: a record per key, with the time of its last event."""
        order = order_bytes((AFTER_DATA, self.segment.stage, 0))
        last = keys.last(np.arange(len(batch))).tolist()
        times = None if batch.times is None else [batch.times[i] for i in last]
        return EventBatch([order] * len(found), found, records, self._keys(records), times, label)

    def _keys(self, records: Records) -> list[Any] | None:
        return records.fields([name for name, _ in self.segment.output.key or ()])

    def _records(self, names: Any, kept: dict[str, Any]) -> Records:
        parts = [name for name, _ in self.segment.output.key or ()]
        columns = [names] if len(parts) == 1 else _parts(names, len(parts))
        for aggregate in self.aggregates:
            columns.append(aggregate.shown([kept[name] for name in aggregate.columns]))
        found = zip(self.layout.columns.items(), columns, strict=True)
        return Records(self.layout, {name: _as_kind(kind, c) for (name, kind), c in found})

    def _names(self, batch: EventBatch, indices: Any) -> Any:
        """The keys of the events at these indices."""
        values = batch.values
        if isinstance(values, Records) and values.layout is self._partial:
            return values.columns[_KEY][indices]
        if batch.keys is not None:
            return objects(map(batch.keys.__getitem__, indices.tolist()))
        if self.segment.key is None:
            return objects([None] * len(indices))
        some = batch.take(indices.tolist()).values
        return objects(map(self.segment.key, some))

    def _lifted(self, batch: EventBatch) -> list[tuple[ColumnAggregate, list[Any]]]:
        """The state of each event, for each aggregate."""
        values = batch.values
        if isinstance(values, Records) and values.layout is self._partial:
            return [(a, [values.columns[name] for name in a.columns]) for a in self.aggregates]
        fields = {a.field for a in self.aggregates if a.field}
        if isinstance(values, Records):
            columns = {field: values.columns[field] for field in fields}
        else:
            layout = self._given
            columns = {field: layout.column(field, values) for field in fields}
        size = len(batch)
        return [(a, a.lifted(columns.get(a.field or ""), size)) for a in self.aggregates]


def _parts(names: Any, count: int) -> list[Any]:
    """The columns of keys that are tuples; none where there is no key."""
    if not count:
        return []
    columns = zip(*names.tolist(), strict=True) if len(names) else [()] * count
    return [objects(column) for column in columns]


def _as_kind(kind: str, column: Any) -> Any:
    dtype = {"int": np.int64, "float": np.float64, "bool": np.bool_}.get(kind)
    if dtype is None:
        return column if column.dtype == object else objects(column.tolist())
    return column.astype(dtype, copy=False)


def aggregation_of(segment: Segment, *, is_timed: bool) -> Aggregation | None:
    """The running aggregate of a segment; None if it must be processed event by event."""
    steps = [part.step for part in segment.parts]
    if len(steps) != 1 or not isinstance(steps[0], s.AggregateAll):
        return None
    step = steps[0]
    fields, alternatives = fields_of(segment.input_type.value), members(segment.input_type.value)
    if (
        fields is None
        or len(alternatives) > 1
        or segment.reads_twice
        or not _has_plain_keys(segment)
    ):
        return None
    found = [column_aggregate(i, n, a, fields) for i, (n, a) in enumerate(step.aggregates)]
    aggregates = tuple(aggregate for aggregate in found if aggregate)
    if len(aggregates) < len(found):
        return None
    is_early = step.emit == "epoch" and not is_timed and isinstance(segment.steps[0], s.KeyBy)
    is_early = is_early and all(a.is_orderless for a in aggregates)
    return Aggregation(segment, step, aggregates, is_early)


def _has_plain_keys(segment: Segment) -> bool:
    """Are equal keys identical, so that it does not matter which of them is stored?"""
    return all(plain_type(tp) in (str, int, bool, bytes) for _, tp in segment.output.key or ())
