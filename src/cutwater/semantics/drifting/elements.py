"""Drifting state: deterministic results by speculation over a total order (P2, section V).

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
t(x), a total order on elements        `Time`: an input's position, and the path from it
element x                              `Element`: a value at its time
order-sensitive operation              `Grouping`: the last elements of a key, in order of t
speculative maintenance of the order   `regroup`: a late element is inserted in order, and what it
                                       displaces is retracted (`Change` with sign -1)
Acker, modified from Storm's           `Acker`
t_last; the barrier                    `due`: what to release, in order of t, after t_last
state of an operation in snapshot k    `settled_group`: what depends on inputs before k, and no more
without failures and races             `outputs_in_order`: the fold that everything is compared with
=====================================  =====================================================

Where P2 is silent (2026-11-18):

- t(child) = (t(parent), step, index). A window is the child of its last element, so two windows
  that end with the same element share one t; a retraction carries it together with the retracted
  value. Elements and retractions are counted, so they may overtake each other.
- Frontiers are exclusive: everything before one is done. Snapshot k is the frontier it was taken
  at, and replay begins with the first input that is not before it.
- P2's acker keeps an XOR of random numbers in a ring. Numbers can cancel and a ring wraps; ours
  keeps the names themselves, in sets, which also tolerate duplicates.
- An operation is a grouping followed by a pure function of the window: a window of one is a map.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

__all__ = [
    "BEGIN",
    "EMPTY",
    "END_OF_INPUT",
    "Acker",
    "Change",
    "Element",
    "Group",
    "Grouping",
    "Root",
    "Time",
    "collected",
    "due",
    "fold",
    "outputs_in_order",
    "regroup",
    "settled_group",
]

Root = tuple[int, int]
"""The time of an input: its offset at its producer, then the producer's number."""
BEGIN: Root = (0, 0)
"""The frontier before anything is done."""
END_OF_INPUT: Root = (sys.maxsize, 0)
"""The frontier when nothing more will arrive."""


class Time(NamedTuple):
    """t(x): unique, and ordered as P2 requires: parents first, all of an input together."""

    root: Root
    """t(a) of the input it descends from."""
    path: tuple[tuple[int, int], ...] = ()
    """The path from there: for each operation its number, and the index of the output."""

    def child(self, step: int, index: int) -> Time:
        """The time of an output of an operation."""
        return Time(self.root, (*self.path, (step, index)))


class Element(NamedTuple):
    """A value at its time."""

    t: Time
    value: Any
    """Hashable."""


class Change(NamedTuple):
    """A message between operations: an element, or its retraction."""

    element: Element
    """For a retraction, the element it retracts, with its t and value."""
    sign: int = 1
    """1 for an element, -1 for its retraction."""


def _one_key(value: Any) -> int:
    return 0


def _whole(window: tuple[Any, ...]) -> Sequence[Any]:
    return (window,)


@dataclass(frozen=True)
class Grouping:
    """An order-sensitive operation: a function of the last elements with the same key."""

    window: int
    """The number of elements it looks at, including the newest; at least 1."""
    key: Callable[[Any], int] = _one_key
    """The key of a value; it also determines the node that processes the value."""
    emit: Callable[[tuple[Any, ...]], Sequence[Any]] = _whole
    """The outputs of a window: any number of hashable values; pure."""


class Group(msgspec.Struct, frozen=True, cache_hash=True):
    """The elements of one key at a grouping."""

    present: tuple[Element, ...] = ()
    """In order of t."""
    balance: frozenset[tuple[Element, int]] = frozenset()
    """How often an element was inserted beyond what `present` shows; negative if its retraction
    overtook it. Empty when nothing is in flight."""


EMPTY = Group()
"""The group of a new key."""


def regroup(
    grouping: Grouping, step: int, group: Group, change: Change
) -> tuple[Group, tuple[Change, ...]]:
    """Insert or retract an element, retract the windows that this displaces, send the new ones.

    At every moment the sum of everything sent equals the in-order outputs of `present`, so once
    nothing is in flight, the order of arrival is invisible.
    """
    # PREMISE: the element becomes present, or ceases to be
    element, sign = change
    balance = dict(group.balance)
    at = _index(group.present, element)
    is_present = group.present[at : at + 1] == (element,)
    count = is_present + balance.pop(element, 0) + sign
    if excess := count - (count > 0):
        balance[element] = excess
    left = frozenset(balance.items())
    if (count > 0) == is_present:
        return Group(group.present, left), ()
    # STATE
    reach = grouping.window - 1
    first, behind = max(0, at - reach), at + is_present
    context, later = group.present[first:at], group.present[behind : behind + reach]
    middle = () if is_present else (element,)
    present = (*group.present[:at], *middle, *group.present[behind:])
    # RESULT
    old = _outputs(grouping, step, (*context, *group.present[at:behind], *later), len(context))
    new = _outputs(grouping, step, (*context, *middle, *later), len(context))
    # counted: while two values share one t, they may have equal outputs
    difference = Counter(new)
    difference.subtract(old)
    taken_back = (Change(output, -1) for output in (-difference).elements())
    sent = (Change(output) for output in (+difference).elements())
    return Group(present, left), (*taken_back, *sent)


def _index(present: Sequence[Element], element: Element) -> int:
    at = bisect_left(present, element.t, key=_time)
    while at < len(present) and present[at].t == element.t and _rank(present[at]) < _rank(element):
        at += 1
    return at


def _time(element: Element) -> Time:
    return element.t


def _rank(element: Element) -> tuple[Time, str]:
    # Two values share one t only until the retraction of one arrives; any fixed order will do.
    return element.t, repr(element.value)


def _outputs(
    grouping: Grouping, step: int, elements: Sequence[Element], first: int
) -> list[Element]:
    """The outputs of the windows that end with each element from index `first` on."""
    return [
        Element(elements[last].t.child(step, index), value)
        for last in range(first, len(elements))
        for index, value in enumerate(
            grouping.emit(
                tuple(e.value for e in elements[max(0, last + 1 - grouping.window) : last + 1])
            )
        )
    ]


def settled_group(grouping: Grouping, group: Group, frontier: Root) -> Group:
    """The state of a key in the snapshot at a frontier: what later windows need, no speculation."""
    end = _first_from(group, frontier)
    return Group(group.present[max(0, end - grouping.window + 1) : end])


def collected(grouping: Grouping, group: Group, frontier: Root) -> Group:
    """The group without elements that no window needs once the frontier has passed."""
    end = _first_from(group, frontier)
    start = max(0, end - grouping.window + 1)
    return Group(group.present[start:], group.balance) if start else group


def _first_from(group: Group, frontier: Root) -> int:
    return bisect_left(group.present, frontier, key=lambda element: element.t.root)


def due(outputs: Mapping[Element, int], frontier: Root, last: Time | None) -> list[Element]:
    """What a barrier may release: in order of t, before the frontier and after t_last."""
    return sorted(
        (
            element
            for element, count in outputs.items()
            if count > 0 and element.t.root < frontier and (last is None or element.t > last)
        ),
        key=_rank,
    )


class Acker(msgspec.Struct, frozen=True, cache_hash=True):
    """Tracks which inputs are done: what was sent and what was processed, name by name.

    Every message has a unique name. An agent that has processed one reports it as done together
    with what it sent, so an input is done when the two sets agree on it. Reports may be duplicated
    and reordered; a missing one holds the frontier back.
    """

    bounds: tuple[Root, ...]
    """For each producer, the bound before which it will send nothing."""
    sent: frozenset[tuple[Root, Hashable]] = frozenset()
    """Messages sent, from the frontier on, by input and name."""
    done: frozenset[tuple[Root, Hashable]] = frozenset()
    """Messages processed, likewise."""

    @property
    def frontier(self) -> Root:
        """Every input before this is done, and so is everything it caused."""
        return min((*self.bounds, *(root for root, _ in self.sent ^ self.done)))

    def report(
        self,
        done: Iterable[tuple[Root, Hashable]] = (),
        sent: Iterable[tuple[Root, Hashable]] = (),
    ) -> Acker:
        """Record that messages were processed, and others sent meanwhile."""
        passed = self.frontier
        return Acker(
            self.bounds,
            self.sent.union(name for name in sent if name[0] >= passed),
            self.done.union(name for name in done if name[0] >= passed),
        )._pruned()

    def advance(
        self, producer: int, bound: Root, sent: Iterable[tuple[Root, Hashable]] = ()
    ) -> Acker:
        """Record what a producer has sent so far, and that it will send nothing before the bound.

        `sent` is cumulative, since an earlier report, which says less, may arrive later.
        """
        bounds = list(self.bounds)
        bounds[producer] = max(bounds[producer], bound)
        reported = self.report(sent=sent)
        return Acker(tuple(bounds), reported.sent, reported.done)._pruned()

    def _pruned(self) -> Acker:
        passed = self.frontier
        return Acker(
            self.bounds,
            frozenset(name for name in self.sent if name[0] >= passed),
            frozenset(name for name in self.done if name[0] >= passed),
        )


def outputs_in_order(flow: Sequence[Grouping], inputs: Iterable[Element]) -> list[Element]:
    """The outputs if everything is processed in order of t: the reference.

    Examples
    --------
    >>> inputs = [Element(Time((n, 0)), f"v{n}") for n in (1, 2, 3)]
    >>> [output.value for output in outputs_in_order([Grouping(2)], inputs)]
    [('v1',), ('v1', 'v2'), ('v2', 'v3')]
    """
    elements = sorted(inputs, key=_rank)
    for step, grouping in enumerate(flow):
        elements = fold(grouping, step, elements)
    return elements


def fold(
    grouping: Grouping,
    step: int,
    elements: Iterable[Element],
    windows: dict[int, deque[Any]] | None = None,
) -> list[Element]:
    """The outputs of a grouping on elements that arrive in order of t.

    To continue later, pass a dictionary: it keeps the newest values of each key.
    """
    windows = {} if windows is None else windows
    outputs = []
    for t, value in elements:
        window = windows.setdefault(grouping.key(value), deque(maxlen=grouping.window))
        window.append(value)
        outputs += [
            Element(t.child(step, index), output)
            for index, output in enumerate(grouping.emit(tuple(window)))
        ]
    return outputs
