"""The keys of a batch, and the common computations per key.

Every result equals that of a loop over the events, to the last bit: sums add one event at a time,
never pairwise. No method loops over events in Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cutwater.errors import InputError, Problem, many
from cutwater.vectors.arrays import Array, np

__all__ = ["Keys"]


class Keys:
    """The keys of a batch, numbered from 0; each has at least one event.

    Parameters
    ----------
    of
        The key number of each event.
    size
        The number of keys.

    `start` is an array with one element per key, or one value for all keys.

    Examples
    --------
    >>> import numpy as np
    >>> keys = Keys(np.array([0, 1, 0, 0]), 2)
    >>> keys.running_sum(np.array([1, 2, 3, 4]), start=np.array([10, 20])).tolist()
    [11, 22, 14, 18]
    >>> keys.last(np.array([1, 2, 3, 4])).tolist(), keys.position().tolist()
    ([4, 2], [0, 0, 1, 2])
    >>> [now.tolist() for now in keys.rounds()]
    [[1, 0], [2], [3]]
    """

    def __init__(self, of: Array, size: int) -> None:
        self.of = of
        self.size = size

    def __len__(self) -> int:
        """The number of events."""
        return len(self.of)

    def position(self) -> Array:
        """For each event the number of earlier events of its key in the batch."""
        if self._is_single:
            return np.zeros(len(self), np.int64)
        groups = self._groups
        places = np.arange(len(self)) - np.repeat(groups.begins, groups.counts)
        return self._unsorted(places)

    def running_count(self, start: Any = 0) -> Array:
        """For each event the number of events of its key so far, itself included, plus `start`."""
        start = self._for_keys("running_count", start)
        result: Array = start[self.of] + (self.position() + 1)
        return result

    def running_sum(self, values: Any, start: Any = 0) -> Array:
        """For each event the running sum of its key, itself included, added to `start` in order."""
        return self._running("running_sum", np.add, values, start)

    def running_max(self, values: Any, start: Any = None) -> Array:
        """For each event the largest value of its key so far; -0.0 is 0.0, NaN is the largest."""
        return self._running("running_max", np.maximum, values, start)

    def running_min(self, values: Any, start: Any = None) -> Array:
        """For each event the least value of its key so far; -0.0 is 0.0, NaN is the least."""
        return self._running("running_min", np.minimum, values, start)

    def previous(self, values: Any, start: Any) -> Array:
        """For each event the value of the previous event of its key; `start` for the first."""
        values, start = self._both("previous", values, start)
        if self._is_single:
            result: Array = start[self.of]
            return result
        groups = self._groups
        sent = np.empty_like(values)
        sent[1:] = values[groups.order][:-1]
        sent[groups.begins] = start[groups.keys]
        return self._unsorted(sent)

    def count(self) -> Array:
        """For each key the number of its events."""
        return np.bincount(self.of, minlength=self.size)

    def sum(self, values: Any, start: Any = 0) -> Array:
        """For each key the sum of its values, added to `start` one by one."""
        return self._folded("sum", np.add, values, start)

    def max(self, values: Any, start: Any = None) -> Array:
        """For each key its largest value; -0.0 is 0.0, NaN is the largest."""
        return self._folded("max", np.maximum, values, start)

    def min(self, values: Any, start: Any = None) -> Array:
        """For each key its least value; -0.0 is 0.0, NaN is the least."""
        return self._folded("min", np.minimum, values, start)

    def first(self, values: Any) -> Array:
        """For each key the value of its first event."""
        values = self._for_events("first", values)
        result = np.zeros(self.size, values.dtype)
        result[self.of[::-1]] = values[::-1]  # with repeated indices the last assignment wins
        return result

    def last(self, values: Any) -> Array:
        """For each key the value of its last event."""
        values = self._for_events("last", values)
        result = np.zeros(self.size, values.dtype)
        result[self.of] = values
        return result

    def rounds(self) -> Iterator[Array]:
        """The first event of every key, then the second of every key that has one, and so on.

        Each round is an array of event indices, all of different keys, so that any recurrence can
        be computed for all keys at once. The key with most events sets the number of rounds.

        >>> import numpy as np
        >>> keys, level = Keys(np.array([0, 0, 1]), 2), np.zeros(2)
        >>> values = np.array([8.0, 2.0, 6.0])
        >>> for now in keys.rounds():
        ...     level[keys.of[now]] = (level[keys.of[now]] + values[now]) / 2
        >>> level.tolist()
        [3.0, 3.0]
        """
        if self._is_single:
            yield from [np.arange(len(self))] if len(self) else []
            return
        groups = self._groups
        for number in range(int(groups.counts[-1])):
            left = int(np.searchsorted(groups.counts, number, side="right"))
            yield groups.order[groups.begins[left:] + number]

    @cached_property
    def _counts(self) -> Array:
        return self.count()

    @cached_property
    def _is_single(self) -> bool:
        """Does every key have exactly one event?"""
        return not len(self) or int(self._counts.max()) == 1

    @cached_property
    def _groups(self) -> _Groups:
        by_count = _order_of(self._counts)
        rank = np.empty_like(by_count)
        rank[by_count] = np.arange(self.size)
        kept = by_count[self._counts[by_count] > 0]
        counts = self._counts[kept]
        return _Groups(_order_of(rank[self.of]), kept, counts, np.cumsum(counts) - counts)

    def _unsorted(self, grouped: Array) -> Array:
        result = np.empty_like(grouped)
        result[self._groups.order] = grouped
        return result

    def _running(self, method: str, ufunc: Any, values: Any, start: Any) -> Array:
        values, start = self._operands(method, ufunc, values, start)
        with np.errstate(all="ignore"):  # overflow and NaN pass silently, as in Python
            return self._accumulated(ufunc, values, start)

    def _accumulated(self, ufunc: Any, values: Array, start: Any) -> Array:
        if self._is_single:
            single: Array = values.copy() if start is None else ufunc(start[self.of], values)
            return single
        groups = self._groups
        grouped = values[groups.order]
        for keys, part in groups.blocks():
            rows = grouped[part].reshape(len(keys), -1)
            if start is not None:
                rows = np.concatenate([start[keys, None], rows], axis=1)
            done = ufunc.accumulate(rows, axis=1)
            grouped[part] = (done if start is None else done[:, 1:]).ravel()
        return self._unsorted(grouped)

    def _folded(self, method: str, ufunc: Any, values: Any, start: Any) -> Array:
        values, start = self._operands(method, ufunc, values, start)
        result = self.first(values) if start is None else start.copy()
        with np.errstate(all="ignore"):
            ufunc.at(result, self.of, values)  # unbuffered: one by one, in the order of the events
        return result

    def _operands(self, method: str, ufunc: Any, values: Any, start: Any) -> tuple[Array, Any]:
        """Both in the type of the result, normalised so that the order of equals is invisible."""
        if start is None:
            values = self._for_events(method, values)
        else:
            values, start = self._both(method, values, start)
        if ufunc is np.add and values.dtype == bool:
            return values.astype(np.int64), start if start is None else start.astype(np.int64)
        if ufunc is not np.add and values.dtype.kind == "f":
            return values + 0.0, start if start is None else start + 0.0
        return values, start

    def _both(self, method: str, values: Any, start: Any) -> tuple[Array, Array]:
        values, start = self._for_events(method, values), self._for_keys(method, start)
        common = np.result_type(values, start)
        return values.astype(common), start.astype(common)

    def _for_events(self, method: str, values: Any) -> Array:
        return _spread(values, len(self), f"keys.{method} was given", "event")

    def _for_keys(self, method: str, start: Any) -> Array:
        return _spread(start, self.size, f"keys.{method} was given a start of", "key")


@dataclass(frozen=True)
class _Groups:
    """The events of a batch sorted by the number of events of their key, then by key."""

    order: Array
    """The events in that order."""
    keys: Array
    """The keys in that order."""
    counts: Array
    """The number of events of each of these keys; ascending."""
    begins: Array
    """Where the events of each of these keys begin."""

    def blocks(self) -> Iterator[tuple[Array, slice]]:
        """Keys with the same number of events, and the slice of these events.

        There are few blocks: n events allow at most √2n different numbers of events per key.
        """
        ends = [*(np.flatnonzero(np.diff(self.counts)) + 1).tolist(), len(self.keys)]
        first = begin = 0
        for end in ends:
            size = (end - first) * int(self.counts[first])
            yield self.keys[first:end], slice(begin, begin + size)
            first, begin = end, begin + size


def _order_of(numbers: Array) -> Array:
    """A stable argsort.

    Sorting numbers that carry their index in the low bits is ten times faster than ``argsort``.
    """
    places = np.arange(len(numbers))
    if np.all(numbers[1:] >= numbers[:-1]):
        return places
    bits = len(numbers).bit_length()
    held = (numbers.astype(np.int64) << bits) | places
    held.sort()
    result: Array = held & ((1 << bits) - 1)
    return result


def _spread(values: Any, count: int, message: str, each: str) -> Array:
    array = np.asarray(values)
    if array.ndim == 0:
        return np.full(count, values, array.dtype)
    if array.shape == (count,):
        return array
    shape = many(len(array), "value") if array.ndim == 1 else f"an array of shape {array.shape}"
    raise InputError(
        Problem(
            "vector-length",
            f"{message} {shape}; the batch has {many(count, each)}",
            f"give one value for each {each}, or one for all",
        )
    )
