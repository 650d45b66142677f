"""Drifting state: deterministic results by speculation over a total order (P2, section V).

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
t(x), a total order on elements        `Time`: an input's place, and the way from it
element x                              `Element`: a value at its time
order-sensitive operation              `Grouping`: the last elements of a key, in order of t
speculative maintenance of the order   `regroup`: a late element is put in its place, and what it
                                       displaced is retracted (`Change` with sign -1)
Acker, modified from Storm's           `Acker`
t_last; the barrier                    `due`: what may leave, in order of t, behind t_last
state of an operation in snapshot k    `settled`: what depends on inputs before k, and no more
without failures and races             `in_order`: the fold that everything is compared with
=====================================  =====================================================

Where P2 is silent (2026-11-18; decision 29):

- t(child) = (t(parent), step, index). A window is the child of its last element, so two windows
  that end with the same element have one t; a retraction carries it together with the value that
  it takes back. Elements and retractions are counted, so they may overtake each other.
- Frontiers are exclusive: what is before one is done. Snapshot k is the frontier it was taken at,
  and replay begins with the first input that is not before it.
- P2 gives the acker a xor of random numbers in a ring. Numbers can cancel and a ring wraps; ours
  keeps the names themselves, in sets. A set may hear of one name twice.
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
    "END",
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
    "in_order",
    "regroup",
    "settled",
]

Root = tuple[int, int]
"""The time of an input: its place at its producer, then the producer's number."""
BEGIN: Root = (0, 0)
"""The frontier before anything is done."""
END: Root = (sys.maxsize, 0)
"""The frontier when nothing will come any more."""


class Time(NamedTuple):
    """t(x): unique, and ordered as P2 asks: parents before children, all of an input together."""

    root: Root
    """t(a) of the input it descends from."""
    path: tuple[tuple[int, int], ...] = ()
    """The way from there: for each operation its number, and which of its outputs this was."""

    def child(self, step: int, index: int) -> Time:
        """The time of an output of an operation."""
        return Time(self.root, (*self.path, (step, index)))


class Element(NamedTuple):
    """A value at its time."""

    t: Time
    value: Any
    """Hashable."""


class Change(NamedTuple):
    """What operations send each other: an element, or its retraction."""

    element: Element
    """A retraction names the t and the value that it displaces."""
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
    """How many elements it looks at, the newest included; at least 1."""
    key: Callable[[Any], int] = _one_key
    """The key of a value; it also says on which node the value is worked on."""
    emit: Callable[[tuple[Any, ...]], Sequence[Any]] = _whole
    """What comes of a window: any number of hashable values; pure."""


class Group(msgspec.Struct, frozen=True, cache_hash=True):
    """The elements of one key at a grouping."""

    present: tuple[Element, ...] = ()
    """In order of t."""
    balance: frozenset[tuple[Element, int]] = frozenset()
    """How often an element was inserted beyond what `present` says; below 0 if its retraction
    overtook it. Empty when nothing is on its way."""


EMPTY = Group()
"""A key that nobody has heard of."""


def regroup(
    grouping: Grouping, step: int, group: Group, change: Change
) -> tuple[Group, tuple[Change, ...]]:
    """Insert or take back an element, retract the windows that this displaces, send the new ones.

    The sum of all that is sent is at every moment what `present` gives in order, so when nothing
    is on its way any more, the order of arrival does not show.
    """
    # PREMISE: the element comes to be present, or ceases to be
    element, sign = change
    balance = dict(group.balance)
    at = _place(group.present, element)
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
    # counted: while two values have one t, they may lead to equal outputs
    difference = Counter(new)
    difference.subtract(old)
    taken_back = (Change(output, -1) for output in (-difference).elements())
    sent = (Change(output) for output in (+difference).elements())
    return Group(present, left), (*taken_back, *sent)


def _place(present: Sequence[Element], element: Element) -> int:
    at = bisect_left(present, element.t, key=_time)
    while at < len(present) and present[at].t == element.t and _rank(present[at]) < _rank(element):
        at += 1
    return at


def _time(element: Element) -> Time:
    return element.t


def _rank(element: Element) -> tuple[Time, str]:
    # Two values have one t only until the retraction of one arrives; any fixed order will do.
    return element.t, repr(element.value)


def _outputs(
    grouping: Grouping, step: int, elements: Sequence[Element], first: int
) -> list[Element]:
    """What comes of the windows that end with each element from the first one on."""
    return [
        Element(elements[last].t.child(step, index), value)
        for last in range(first, len(elements))
        for index, value in enumerate(
            grouping.emit(
                tuple(e.value for e in elements[max(0, last + 1 - grouping.window) : last + 1])
            )
        )
    ]


def settled(grouping: Grouping, group: Group, frontier: Root) -> Group:
    """The state of a key in the snapshot at a frontier: what later windows need, no speculation."""
    end = _first_from(group, frontier)
    return Group(group.present[max(0, end - grouping.window + 1) : end])


def collected(grouping: Grouping, group: Group, frontier: Root) -> Group:
    """The same group without what no window will need again once the frontier is passed."""
    end = _first_from(group, frontier)
    start = max(0, end - grouping.window + 1)
    return Group(group.present[start:], group.balance) if start else group


def _first_from(group: Group, frontier: Root) -> int:
    return bisect_left(group.present, frontier, key=lambda element: element.t.root)


def due(outputs: Mapping[Element, int], frontier: Root, last: Time | None) -> list[Element]:
    """What a barrier may release: in order of t, before the frontier and behind t_last."""
    return sorted(
        (
            element
            for element, count in outputs.items()
            if count > 0 and element.t.root < frontier and (last is None or element.t > last)
        ),
        key=_rank,
    )


class Acker(msgspec.Struct, frozen=True, cache_hash=True):
    """Knows which inputs are done: what was sent and what was worked on, name by name.

    Every message has a name of its own. Whoever has worked on one reports it as done together
    with what it sent, so an input is done when the two sets agree on it. A report may come twice,
    and in any order; one that is missing holds the frontier back.
    """

    bounds: tuple[Root, ...]
    """For each producer: it will send nothing before this."""
    sent: frozenset[tuple[Root, Hashable]] = frozenset()
    """Messages that were sent, from the frontier on, by input and name."""
    done: frozenset[tuple[Root, Hashable]] = frozenset()
    """Messages that were worked on, likewise."""

    @property
    def frontier(self) -> Root:
        """Every input before this is done, and so is all that came of it."""
        return min((*self.bounds, *(root for root, _ in self.sent ^ self.done)))

    def report(
        self,
        done: Iterable[tuple[Root, Hashable]] = (),
        sent: Iterable[tuple[Root, Hashable]] = (),
    ) -> Acker:
        """Messages were worked on, and others sent while doing so."""
        passed = self.frontier
        return Acker(
            self.bounds,
            self.sent.union(name for name in sent if name[0] >= passed),
            self.done.union(name for name in done if name[0] >= passed),
        )._pruned()

    def advance(
        self, producer: int, bound: Root, sent: Iterable[tuple[Root, Hashable]] = ()
    ) -> Acker:
        """A producer sent these, all of them so far, and will send nothing before the bound.

        All of them, since a report that says less may come later.
        """
        bounds = list(self.bounds)
        bounds[producer] = max(bounds[producer], bound)
        told = self.report(sent=sent)
        return Acker(tuple(bounds), told.sent, told.done)._pruned()

    def _pruned(self) -> Acker:
        passed = self.frontier
        return Acker(
            self.bounds,
            frozenset(name for name in self.sent if name[0] >= passed),
            frozenset(name for name in self.done if name[0] >= passed),
        )


def in_order(flow: Sequence[Grouping], inputs: Iterable[Element]) -> list[Element]:
    """What comes out if everything is worked on in order of t: the reference.

    Examples
    --------
    >>> inputs = [Element(Time((n, 0)), f"v{n}") for n in (1, 2, 3)]
    >>> [output.value for output in in_order([Grouping(2)], inputs)]
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
    """What a grouping makes of elements that come in order of t.

    To go on later, give a dictionary: it holds the newest values of each key.
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
