"""Batches: events in bulk, column by column, on their way between segments.

What costs something for each event costs least where a whole column is worked on at once.
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

__all__ = ["Batch", "joined", "much_at_once"]


@dataclass(slots=True)
class Batch:
    """Events, each with its place in the order of the epoch and the canonical bytes of its key."""

    orders: list[bytes]
    """Empty where nobody minds."""
    key_bytes: list[bytes]
    values: Sequence[Any]
    """A list, or `Records`."""
    keys: list[Any] | None = None
    """The keys themselves, where someone needs them."""
    times: list[Any] | None = None
    """The times of the events, where someone needs them."""
    label: int | None = None
    """The label of the bucket that all keys belong to, if they are known to have one."""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, indices: Sequence[int]) -> Batch:
        """The events at some places."""
        return Batch(
            self.orders and list(map(self.orders.__getitem__, indices)),
            list(map(self.key_bytes.__getitem__, indices)),
            _taken(self.values, indices),
            self.keys and list(map(self.keys.__getitem__, indices)),
            self.times and list(map(self.times.__getitem__, indices)),
            self.label,
        )

    def part(self, start: int, end: int, label: int | None) -> Batch:
        """The events between two places."""
        return Batch(
            self.orders[start:end],
            self.key_bytes[start:end],
            self.values[start:end],
            self.keys and self.keys[start:end],
            self.times and self.times[start:end],
            label,
        )

    def halves(self) -> tuple[Batch, Batch]:
        """The first half and the rest."""
        middle = len(self) // 2
        return self.part(0, middle, self.label), self.part(middle, len(self), self.label)

    def by_label(self, labels: Sequence[int]) -> Iterator[Batch]:
        """The events of each bucket."""
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

    def in_order(self) -> Batch:
        """The events in their order; those with one order stay as they are to each other."""
        if all(map(operator.le, self.orders, self.orders[1:])):
            return self
        return self.take(sorted(range(len(self)), key=self.orders.__getitem__))


def _taken(values: Sequence[Any], indices: Sequence[int]) -> Sequence[Any]:
    if isinstance(values, Records):
        return values.take(indices)
    return list(map(values.__getitem__, indices))


@contextmanager
def much_at_once() -> Iterator[None]:
    """Around work that makes many objects and no cycles: looking for them doubles its cost."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def joined(batches: Iterable[Batch]) -> Batch:
    """Several batches as one, one after the other; all have the same columns."""
    first, *others = batches
    if not others:
        return first
    every = [first, *others]
    return Batch(
        [order for batch in every for order in batch.orders],
        [key for batch in every for key in batch.key_bytes],
        joined_values([batch.values for batch in every]),
        None if first.keys is None else [key for batch in every for key in batch.keys or ()],
        None if first.times is None else [time for batch in every for time in batch.times or ()],
        first.label,
    )
