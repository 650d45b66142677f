"""Random partial orders, and random finite streams over them.

A `Case` has the paper's letters as fields: `lxs` the stream, `seen` its W, `pending` its tds,
`batches` its abs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from cutwater.events import Data, Event, Watermark
from cutwater.times import Left, Product, Right

LETTERS = st.sampled_from("abc")
MANY = 36
"""An index below this picks a time out of any order; orders have no more elements."""
INDEXES = st.integers(0, MANY - 1)


@dataclass(frozen=True)
class Point:
    """An element of a finite partial order. It has ``<=`` and no other comparison."""

    name: int
    below: frozenset[int]
    """The names of all elements that are ``<=`` this one."""

    def __le__(self, other: Point) -> bool:
        return self.name in other.below

    def __repr__(self) -> str:
        return f"t{self.name}"


def closure(size: int, edges: Iterable[tuple[int, int]]) -> list[Point]:
    """The partial order on ``0..size-1`` that the edges generate; each goes from less to more."""
    below = [{name} for name in range(size)]
    for less, more in sorted(edges, key=lambda edge: edge[1]):
        below[more] |= below[less]
    return [Point(name, frozenset(names)) for name, names in enumerate(below)]


def partial_orders(max_size: int = 6) -> st.SearchStrategy[list[Point]]:
    """The closure of a random directed acyclic graph; each bit of a number is an edge or none."""
    edges = [(less, more) for more in range(max_size) for less in range(more)]

    def order(size: int, bits: int) -> list[Point]:
        kept = (edge for n, edge in enumerate(edges) if bits >> n & 1)
        return closure(size, (edge for edge in kept if edge[1] < size))

    return st.builds(order, st.integers(2, max_size), st.integers(0, 2 ** len(edges) - 1))


def total_orders() -> st.SearchStrategy[list[Any]]:
    """Numbers, and chains of points that know nothing but ``<=``."""
    chain = closure(5, [(n, n + 1) for n in range(4)])
    return st.sampled_from([list(range(5)), chain])


def one_sided(size: int = 6) -> st.SearchStrategy[list[Any]]:
    """All kinds of times but the disjoint sum, with at most about `size` elements."""
    grid = [Product(a, b) for a in range(size // 2) for b in range(size // 2)]
    return st.one_of(partial_orders(max_size=size), st.just(list(range(size))), st.just(grid))


def two_sided() -> st.SearchStrategy[list[Any]]:
    """The disjoint sum of a small order with itself, so that the sides often meet."""
    return one_sided(4).map(lambda times: [side(t) for t in times for side in (Left, Right)])


def any_order() -> st.SearchStrategy[list[Any]]:
    return st.one_of(one_sided(), two_sided())


def is_completed(time: Any, watermarks: Iterable[Any]) -> bool:
    return any(time <= watermark for watermark in watermarks)


def keep_monotone(events: Iterable[Event], seen: Iterable[Any] = ()) -> list[Event]:
    """The stream without the data that come too late."""
    completed, kept = list(seen), []
    for event in events:
        if isinstance(event, Watermark):
            completed.append(event.time)
        elif is_completed(event.time, completed):
            continue
        kept.append(event)
    return kept


def keep_punctual(events: Iterable[Event], lag: int) -> list[Event]:
    """The stream with watermarks put in, so that each item is completed within `lag` events."""
    paid: list[Event] = []
    owed: list[tuple[int, Any]] = []
    todo = list(events)
    while todo or owed:
        due = owed and (not todo or owed[0][0] + lag <= len(paid))
        event = Watermark(owed[0][1]) if due else todo.pop(0)
        if isinstance(event, Watermark):
            owed = [(position, time) for position, time in owed if not time <= event.time]
        else:
            owed.append((len(paid), event.time))
        paid.append(event)
    return paid


def pick(times: Sequence[Any], index: int) -> Any:
    return times[index % len(times)]


def lists_of(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Lists of up to 15 elements, of which many are not short."""
    return st.one_of(st.lists(elements, min_size=n, max_size=n + 5) for n in (0, 5, 10))


@dataclass(frozen=True)
class Raw:
    """An event whose time is not yet chosen: one in four is a watermark."""

    number: int
    value: Any

    def at(self, times: Sequence[Any]) -> Event:
        time = pick(times, self.number)
        return Watermark(time) if self.number >= 3 * MANY else Data(time, self.value)


def raw_streams(values: st.SearchStrategy[Any] = LETTERS) -> st.SearchStrategy[list[Raw]]:
    return lists_of(st.builds(Raw, st.integers(0, 4 * MANY - 1), values))


def streams(
    orders: st.SearchStrategy[list[Any]], values: st.SearchStrategy[Any] = LETTERS
) -> st.SearchStrategy[list[Event]]:
    """Streams of any kind, most of them not monotone."""
    return st.builds(
        lambda times, raw: [event.at(times) for event in raw], orders, raw_streams(values)
    )


RAW_TIMES = st.lists(INDEXES, max_size=2)
RAW_PAIRS = st.lists(st.tuples(INDEXES, LETTERS), max_size=4)


def pairs_at(times: Sequence[Any], raw: Iterable[tuple[int, Any]]) -> list[tuple[Any, Any]]:
    """A buffer of times and values."""
    return [(pick(times, index), value) for index, value in raw]


@dataclass(frozen=True)
class Case:
    times: list[Any]
    lxs: list[Event]
    seen: list[Any]
    pending: list[tuple[Any, Any]]
    batches: list[tuple[Any, Any]]


def cases(
    orders: st.SearchStrategy[list[Any]] | None = None, *, monotone: bool = True
) -> st.SearchStrategy[Case]:
    """An order, a stream and buffers over it; nothing relates the buffers to what was seen."""

    def case(times: list[Any], raw: list[Raw], *raw_buffers: list[Any]) -> Case:
        raw_seen, pending, batches = raw_buffers
        seen = [pick(times, index) for index in raw_seen]
        lxs = [event.at(times) for event in raw]
        kept = keep_monotone(lxs, seen) if monotone else lxs
        return Case(times, kept, seen, pairs_at(times, pending), pairs_at(times, batches))

    chosen = any_order() if orders is None else orders
    return st.builds(case, chosen, raw_streams(), RAW_TIMES, RAW_PAIRS, RAW_PAIRS)


def uncompleted_pending(case: Case) -> list[tuple[Any, Any]]:
    """The pending pairs that no watermark seen before the stream has completed."""
    return [pair for pair in case.pending if not is_completed(pair[0], case.seen)]


def completed_batches(case: Case) -> list[tuple[Any, Any]]:
    """The earlier pairs that some watermark seen before the stream has completed."""
    return [pair for pair in case.batches if is_completed(pair[0], case.seen)]
