"""Batches: events in bulk, column by column, on their way between segments.

What costs something for each event costs least where a whole column is worked on at once.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cutwater.order import bucket_of

__all__ = ["Batch", "joined"]


@dataclass(slots=True)
class Batch:
    """Events, each with its place in the order of the epoch and the canonical bytes of its key."""

    orders: list[bytes]
    key_bytes: list[bytes]
    values: list[Any]
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
            [self.orders[i] for i in indices],
            [self.key_bytes[i] for i in indices],
            [self.values[i] for i in indices],
            None if self.keys is None else [self.keys[i] for i in indices],
            None if self.times is None else [self.times[i] for i in indices],
            self.label,
        )

    def halves(self) -> tuple[Batch, Batch]:
        """The first half and the rest."""
        middle = len(self) // 2
        return self.take(range(middle)), self.take(range(middle, len(self)))

    def by_label(self, labels: Sequence[int]) -> Iterator[Batch]:
        """The events of each bucket."""
        if self.label is not None or not self.values:
            yield self
            return
        found: dict[int, list[int]] = {}
        buckets = len(labels)
        for i, key in enumerate(self.key_bytes):
            found.setdefault(bucket_of(key, buckets), []).append(i)
        for bucket, indices in found.items():
            part = self if len(found) == 1 else self.take(indices)
            part.label = labels[bucket]
            yield part

    def in_order(self) -> Batch:
        """The events in their order; those with one order stay as they are to each other."""
        if all(map(operator.le, self.orders, self.orders[1:])):
            return self
        return self.take(sorted(range(len(self)), key=self.orders.__getitem__))


def joined(batches: Iterable[Batch]) -> Batch:
    """Several batches as one, one after the other; all have the same columns."""
    first, *others = batches
    if not others:
        return first
    every = [first, *others]
    return Batch(
        [order for batch in every for order in batch.orders],
        [key for batch in every for key in batch.key_bytes],
        [value for batch in every for value in batch.values],
        None if first.keys is None else [key for batch in every for key in batch.keys or ()],
        None if first.times is None else [time for batch in every for time in batch.times or ()],
        first.label,
    )
