"""A distributed stream processing system and its four steps (P2, sections III.A to III.D).

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
Γ, the elements                        `Element`; whatever `System.transforms` derives from inputs
A, B, W                                `Configuration`: inputs, outputs, working; each a `Bag`
D ⊆ 2^Γ × 2^Γ, and χ ~ P(X | ...)      `System.transforms`: the (X, Y) that may be chosen in W ∪ B
F                                      `System.recover`: the working sets that may be restored
Def. 1, Input                          `take_input`
Def. 1, Output                         `release`
Def. 1, Transform                      `transform`
Def. 1, Failure and recover            `fail_and_recover`
Def. 3, F*                             `reference_recovery`
=====================================  =====================================================

Where we interpret the paper (2026-11-18):

- A, B and W are multisets: as sets, an output released twice would count once. Elements carry
  identity in their value: two inputs are two elements, a replayed input is the same element again.
- D relates sets, and the choice among them "depends on a system architecture": `transforms` is
  both; given W and B it returns the pairs that may be chosen next. What is released from W is up to
  the architecture as well (`System.leaving`): a waiting output may not be released yet.
- F has several results where the replay inside it races (Table II, row 14 is one F). F* knows the
  working set, which no function of A and B does.
- A snapshot is an output that is stored but not visible (`System.shown`). Table II's snapshot step
  is a Transform that copies the state, followed by an Output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

__all__ = [
    "EMPTY",
    "Bag",
    "Change",
    "Configuration",
    "Element",
    "Recovery",
    "System",
    "bag",
    "fail_and_recover",
    "reference_recovery",
    "release",
    "take_input",
    "transform",
]


class Element(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """One element of the data flow: an input, a state, an output, a snapshot."""

    kind: str
    """Its role in the physical graph, for instance ``"in"`` or ``"state"``."""
    value: Any
    """The payload; hashable, and ordered among elements of its kind."""

    def __str__(self) -> str:
        return f"{self.kind} {_text(self.value)}"


def _text(value: Any) -> str:
    return "+".join(map(_text, value)) if isinstance(value, tuple) else str(value)


class Bag(msgspec.Struct, frozen=True, cache_hash=True):
    """A multiset of elements. Make one with `bag`.

    >>> a, b = Element("in", "a"), Element("in", "b")
    >>> bag(a, b) - bag(b) == bag(a), bag(a, a) <= bag(a, b), bag(b, a) == bag(a) + bag(b)
    (True, False, True)
    """

    elements: tuple[Element, ...] = ()
    """Sorted, so that equal multisets compare equal."""

    def __iter__(self) -> Iterator[Element]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __contains__(self, element: object) -> bool:
        return element in self.elements

    def __add__(self, other: Bag) -> Bag:
        if not other.elements:
            return self
        return Bag(tuple(sorted(self.elements + other.elements)))

    def __sub__(self, other: Bag) -> Bag:
        left = list(self.elements)
        for element in other.elements:
            if element in left:
                left.remove(element)
        return Bag(tuple(left))

    def __le__(self, other: Bag) -> bool:
        if len(self.elements) > len(other.elements):
            return False
        return not (self - other).elements

    def count(self, element: Element) -> int:
        """The multiplicity of an element."""
        return self.elements.count(element)

    def distinct(self) -> tuple[Element, ...]:
        """Its elements, each once."""
        return tuple(dict.fromkeys(self.elements))

    def of_kind(self, kind: str) -> tuple[Element, ...]:
        """Its elements of one kind, each once."""
        return tuple(dict.fromkeys([e for e in self.elements if e.kind == kind]))

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.elements)) + "}"


def bag(*elements: Element) -> Bag:
    """The multiset of these elements."""
    return Bag(tuple(sorted(elements)))


EMPTY = Bag()
"""The empty multiset."""

Change = tuple[Bag, Bag]
"""(X, Y) ∈ D: what a Transform takes, and what it replaces it by."""
Recovery = Callable[[Bag, Bag], Iterable[Bag]]
"""F: the working sets that may be restored from the inputs and the outputs."""


@dataclass(frozen=True)
class System:
    """A stream processing system (Γ, D, F); Definition 1."""

    name: str
    """Its name in tables."""
    recovery: str
    """What its recovery function does, as a phrase."""
    transforms: Callable[[Bag, Bag], Iterable[Change]]
    """Of W and B: the (X, Y) ∈ D with X ⊆ W ∪ B that may be chosen next."""
    leaving: Callable[[Bag, Bag], Iterable[Element]]
    """Of W and B: the elements of W that may be released next."""
    recover: Recovery
    """F."""
    shown: frozenset[str] = frozenset({"out"})
    """The kinds of outputs that a consumer sees; all others are stored only for recovery."""
    snapshots: frozenset[str] = frozenset()
    """The kinds of outputs from which the state of an operation can be restored."""
    holds: Callable[[Element, Element], bool] = lambda snapshot, output: False
    """Does a snapshot include the state that a visible output depends on?"""
    barrier: Callable[[Element], str] = lambda output: ""
    """The barrier that releases an output; Definition 10 applies to each of them."""

    def visible(self, outputs: Bag) -> Bag:
        """The outputs that a consumer sees."""
        return Bag(tuple(element for element in outputs if element.kind in self.shown))


class Configuration(msgspec.Struct, frozen=True, cache_hash=True):
    """A, B and W at one point in time."""

    inputs: Bag = EMPTY
    """A: everything that has entered, kept by the producers for replay."""
    outputs: Bag = EMPTY
    """B: everything that has left, including snapshots."""
    working: Bag = EMPTY
    """W: everything in the system, including states; lost in a failure."""


def take_input(c: Configuration, element: Element) -> Configuration:
    """Definition 1, Input: an element enters the system."""
    # PREMISE: none; the element is any of Γ
    # STATE
    inputs, working = c.inputs + bag(element), c.working + bag(element)
    # RESULT
    return Configuration(inputs, c.outputs, working)


def release(c: Configuration, element: Element) -> Configuration | None:
    """Definition 1, Output: an element leaves the system, to a consumer or to storage."""
    # PREMISE: it is in the working set
    if element not in c.working:
        return None
    # STATE
    outputs, working = c.outputs + bag(element), c.working - bag(element)
    # RESULT
    return Configuration(c.inputs, outputs, working)


def transform(c: Configuration, change: Change) -> Configuration | None:
    """Definition 1, Transform: an operation replaces elements; snapshots may be read from B."""
    # PREMISE: X ⊆ W ∪ B
    taken, made = change
    if not taken <= c.working + c.outputs:
        return None
    # STATE: what was read from B stays there
    working = (c.working - taken) + made
    # RESULT
    return Configuration(c.inputs, c.outputs, working)


def fail_and_recover(c: Configuration, restored: Bag, recover: Recovery) -> Configuration | None:
    """Definition 1, Failure and recover: the working set is lost and F restores one."""
    # PREMISE: F may restore it
    if restored not in recover(c.inputs, c.outputs):
        return None
    # STATE: nothing remains but what was restored
    # RESULT
    return Configuration(c.inputs, c.outputs, restored)


def reference_recovery(c: Configuration) -> Recovery:
    """Definition 3, F*: restores exactly the working set from before the failure."""
    return lambda inputs, outputs: (c.working,)
