"""Batches of events in columns, on their way between segments.

The cost per event is lowest if each operation processes a whole column.
"""

from __future__ import annotations

import gc
import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutwater.ordering import buckets_of
from cutwater.spark.exchange.columns import Records, joined_values

__all__ = ["EventBatch", "joined", "without_gc"]


@dataclass(slots=True)
class EventBatch:
    """Events, each with its position in the order of the epoch and its key's canonical bytes."""

    orders: list[bytes]
    """Empty if nothing downstream needs the order."""
    key_bytes: list[bytes]
    values: Sequence[Any]
    """A list, or `Records`."""
    keys: list[Any] | None = None
    """The keys themselves; None if they are not needed."""
    times: list[Any] | None = None
    """The times of the events; None if they are not needed."""
    label: int | None = None
    """The label of the bucket, if all keys are known to belong to one."""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, indices: Sequence[int]) -> EventBatch:
        """The events at these indices."""
        return EventBatch(
            self.orders and list(map(self.orders.__getitem__, indices)),
            list(map(self.key_bytes.__getitem__, indices)),
            _taken(self.values, indices),
            self.keys and list(map(self.keys.__getitem__, indices)),
            self.times and list(map(self.times.__getitem__, indices)),
            self.label,
        )

    def part(self, start: int, end: int, label: int | None) -> EventBatch:
        """The events from one index to another, exclusive."""
        return EventBatch(
            self.orders[start:end],
            self.key_bytes[start:end],
            self.values[start:end],
            self.keys and self.keys[start:end],
            self.times and self.times[start:end],
            label,
        )

    def halves(self) -> tuple[EventBatch, EventBatch]:
        """The first half and the rest."""
        middle = len(self) // 2
        return self.part(0, middle, self.label), self.part(middle, len(self), self.label)

    def by_label(self, labels: Sequence[int]) -> Iterator[EventBatch]:
        """One batch per bucket."""
        if self.label is not None or not len(self):
            yield self
            return
        buckets = np.array(buckets_of(self.key_bytes, len(labels)), np.uint16)
        together = self.take(np.argsort(buckets, kind="stable").tolist())
        start = 0
        for label, count in zip(labels, np.bincount(buckets).tolist(), strict=False):
            if count:
                yield together.part(start, start + count, label)
                start += count

    def in_order(self) -> EventBatch:
        """The events sorted by order; the sort is stable."""
        if all(map(operator.le, self.orders, self.orders[1:])):
            return self
        return self.take(sorted(range(len(self)), key=self.orders.__getitem__))


def _taken(values: Sequence[Any], indices: Sequence[int]) -> Sequence[Any]:
    if isinstance(values, Records):
        return values.take(indices)
    return list(map(values.__getitem__, indices))


@contextmanager
def without_gc() -> Iterator[None]:
    """Disable garbage collection for work that makes many objects but no cycles.

    Searching for cycles would double its cost.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def joined(batches: Iterable[EventBatch]) -> EventBatch:
    """The concatenation of batches; all have the same columns."""
    first, *others = batches
    if not others:
        return first
    every = [first, *others]
    return EventBatch(
        [order for batch in every for order in batch.orders],
        [key for batch in every for key in batch.key_bytes],
        joined_values([batch.values for batch in every]),
        None if first.keys is None else [key for batch in every for key in batch.keys or ()],
        None if first.times is None else [time for batch in every for time in batch.times or ()],
        first.label,
    )
