"""Infinite streams that are monotone and productive by construction, and what they owe.

A stream repeats a random round of events for ever, two steps later in time with each round, and
ends each round with the watermarks that complete the round before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

from hypothesis import strategies as st
from support.operators.orders import (
    INDEXES,
    LETTERS,
    RAW_PAIRS,
    is_completed,
    pairs_at,
    partial_orders,
    pick,
)

from cutwater.events import Data, Event, Watermark
from cutwater.operators import Operator
from cutwater.times import Left, Product, Right, maximal

STEP = 2
REACH = 4
"""A round uses the times of REACH steps, so that it overlaps with the next one."""


@dataclass(frozen=True)
class Clock:
    """An order without end: a step number and a place, and how they make a time."""

    at: Callable[[int, Any], Any]
    places: tuple[Any, ...]
    tops: tuple[Any, ...]
    """The maximal places."""


def numbers() -> Clock:
    return Clock(lambda step, _: step, (None,), (None,))


def grid() -> Clock:
    """Pairs of numbers; a place says how far the second one lags behind the first."""
    return Clock(lambda step, behind: Product(step, step - behind), (0, 2), (0,))


def layers(points: Sequence[Any]) -> Clock:
    """A finite partial order beside the step."""
    return Clock(Product, tuple(points), tuple(maximal(points)))


def sides(clock: Clock) -> Clock:
    """The disjoint sum of a clock with itself."""

    def both(places: Sequence[Any]) -> tuple[Any, ...]:
        return tuple((side, place) for place in places for side in (Left, Right))

    def at(step: int, place: Any) -> Any:
        side, inner = place
        return side(clock.at(step, inner))

    return Clock(at, both(clock.places), both(clock.tops))


def one_sided_clocks() -> st.SearchStrategy[Clock]:
    return st.one_of(st.just(numbers()), st.just(grid()), partial_orders(max_size=4).map(layers))


def two_sided_clocks() -> st.SearchStrategy[Clock]:
    return one_sided_clocks().map(sides)


def any_clock() -> st.SearchStrategy[Clock]:
    return st.one_of(one_sided_clocks(), two_sided_clocks())


@dataclass(frozen=True)
class Stream:
    """An infinite stream; iterate it as often as you like."""

    clock: Clock
    round: tuple[tuple[bool, int, Any, Any], ...]
    """For each event: is it data, its step in the round, its place, its value."""
    batched: bool = False
    """Does each item hold a batch: its value, at its own time and at the first of its place?"""

    @property
    def lag(self) -> int:
        """Every item is completed by the end of the next round."""
        return 2 * self.round_length

    @property
    def round_length(self) -> int:
        return len(self.round) + len(self.clock.tops)

    def times(self, number: int = 0) -> list[Any]:
        """The times that a round may use."""
        steps = range(number * STEP, number * STEP + REACH)
        return [self.clock.at(step, place) for step in steps for place in self.clock.places]

    def __iter__(self) -> Iterator[Event]:
        completed: list[Any] = []
        for number in count():
            for is_data, step, place, value in self.round:
                time = self.clock.at(number * STEP + step, place)
                if not is_data:
                    completed = maximal([*completed, time])
                    yield Watermark(time)
                elif not is_completed(time, completed):
                    first = self.clock.at(0, place)
                    yield Data(time, ((first, value), (time, value)) if self.batched else value)
            for place in self.clock.tops:
                time = self.clock.at(number * STEP + REACH - STEP - 1, place)
                completed = maximal([*completed, time])
                yield Watermark(time)

    def prefix(self, n: int) -> list[Event]:
        return list(islice(self, n))


def infinite_streams(
    clocks: st.SearchStrategy[Clock] | None = None,
    values: st.SearchStrategy[Any] = LETTERS,
    *,
    batched: bool = False,
) -> st.SearchStrategy[Stream]:
    """Monotone and productive streams without end."""

    def stream(clock: Clock, rounds: list[tuple[bool, int, int, Any]]) -> Stream:
        placed = ((data, step, pick(clock.places, n), value) for data, step, n, value in rounds)
        return Stream(clock, tuple(placed), batched)

    event = st.tuples(st.booleans(), st.integers(0, REACH - 1), INDEXES, values)
    chosen = any_clock() if clocks is None else clocks
    return st.builds(stream, chosen, st.lists(event, min_size=1, max_size=5))


def with_pending() -> st.SearchStrategy[tuple[Stream, list[tuple[Any, Any]]]]:
    """A stream, and a buffer of which it completes every time."""
    return st.builds(
        lambda stream, raw: (stream, pairs_at(stream.times(), raw)), infinite_streams(), RAW_PAIRS
    )


def stepwise(op: Operator, inputs: Sequence[Event]) -> list[tuple[int, Event]]:
    """Every output before the end, with the number of inputs it took."""
    state, outputs = op.initial, []
    for n, event in enumerate(inputs, start=1):
        state, more = op.step(state, event)
        outputs += [(n, output) for output in more]
    return outputs


def overdue(
    op: Operator, stream: Stream, *, extra: int = 0, rounds: int = 4
) -> list[tuple[int, Data]]:
    """What the operator owes for n inputs and has not completed within ``n + k + extra``.

    k is the lag of the stream. Empty for an operator that preserves productivity with `extra`.
    """
    patience = stream.lag + extra
    judged = rounds * stream.round_length
    outputs = stepwise(op, stream.prefix(judged + patience))
    return [
        (n, output)
        for index, (n, output) in enumerate(outputs)
        if n <= judged and isinstance(output, Data)
        if not any(
            later <= n + patience and isinstance(mark, Watermark) and output.time <= mark.time
            for later, mark in outputs[index + 1 :]
        )
    ]
