"""Events in batches: ways to split a history, and ways to shrink a split.

The events of one key keep their order, and only the last of them are removed: a key always receives
a prefix of what it received in a run.
Not by hypothesis: `check` runs without it, and the seed of a report must give these splits again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, count

from cutwater.checking.flows.histories import KeyedValue

__all__ = ["Splitting", "renumbered", "smaller_splittings", "splittings_of"]

Splitting = tuple[tuple[KeyedValue, ...], ...]
"""Events in batches."""

_LARGEST = 8
"""The number of keys that are tried in many ways, and of the events of each."""


def splittings_of(
    history: Sequence[KeyedValue], drawn: random.Random, tries: int
) -> Iterator[Splitting]:
    """All events in one batch; then some of the keys, interleaved differently, in batches."""
    if len(history) < 2:
        return
    few = _few(history)
    yield (tuple(few),)
    yield _in_batches(few, drawn)
    keys = sorted({key for key, _ in few})
    for _ in range(tries):
        some = drawn.sample(keys, drawn.randint(1, len(keys)))
        events = _interleaved([event for event in few if event[0] in some], drawn)
        if len(events) > 1:
            yield _in_batches(events, drawn) if drawn.random() < 0.7 else (tuple(events),)
    if len(history) > len(few):
        yield (tuple(history),)


def _few(history: Sequence[KeyedValue]) -> list[KeyedValue]:
    """The first events of the keys with most events."""
    left = {key: _LARGEST for key, _ in Counter(key for key, _ in history).most_common(_LARGEST)}
    few = []
    for key, value in history:
        if left.get(key, 0):
            few.append((key, value))
            left[key] -= 1
    return few


def _interleaved(events: Sequence[KeyedValue], drawn: random.Random) -> list[KeyedValue]:
    """The events with their keys interleaved at random; each key keeps its order."""
    keys = [key for key, _ in events]
    drawn.shuffle(keys)
    rest = {key: iter([e for e in events if e[0] == key]) for key in keys}
    return [next(rest[key]) for key in keys]


def _in_batches(events: Sequence[KeyedValue], drawn: random.Random) -> Splitting:
    positions = range(1, len(events))
    cuts = sorted(drawn.sample(positions, min(len(positions), drawn.randint(1, 3))))
    bounds = zip([0, *cuts], [*cuts, len(events)], strict=True)
    return tuple(tuple(events[begin:end]) for begin, end in bounds)


def smaller_splittings(splitting: Splitting) -> Iterator[Splitting]:
    """Splits with fewer events, a prefix for each key, and then with fewer batches."""
    events = list(chain(*splitting))
    size = len(events) // 2
    while size:
        yield _keeping(splitting, range(len(events) - size))
        size //= 2
    keys = list(dict.fromkeys(key for key, _ in events))
    for key in keys[:_LARGEST]:
        yield _keeping(splitting, [n for n, event in enumerate(events) if event[0] != key])
    for key in keys[:_LARGEST]:
        last = max(n for n, event in enumerate(events) if event[0] == key)
        yield _keeping(splitting, [n for n in range(len(events)) if n != last])
    yield from _with_fewer_batches(splitting)


def _keeping(splitting: Splitting, positions: Collection[int]) -> Splitting:
    """The events at these positions, in the same batches."""
    kept, numbers = set(positions), count()
    batches = [tuple(event for event in batch if next(numbers) in kept) for batch in splitting]
    return tuple(batch for batch in batches if batch)


def _with_fewer_batches(splitting: Splitting) -> Iterator[Splitting]:
    for number in range(1, len(splitting)):
        joined = splitting[number - 1] + splitting[number]
        yield (*splitting[: number - 1], joined, *splitting[number + 1 :])


def renumbered(splitting: Splitting) -> Splitting:
    """The same, with keys renumbered from 1, in order."""
    keys = sorted({key for key, _ in chain(*splitting)})
    number = {key: n for n, key in enumerate(keys, 1)}
    return tuple(tuple((number[key], value) for key, value in batch) for batch in splitting)
