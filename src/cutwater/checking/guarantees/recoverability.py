"""When exactly-once needs a snapshot before the output (P2, Theorem 1).

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
(i) x, y ∈ Cl_D(a); (ii) ((x, y), s)   `Race`: a becomes x and y; the race between them makes s or
                                       s′; the rest is derived alike from either
(iii) b₁, b₂ ∈ Cl_D(s), τ₁ < τ₂        `Race.first`, `Race.second`
condition (1), G                       `snapshot_condition`
exactly-once                           `has_recovery`: for some F with F(A, B) ⊆ A ∪ B
=====================================  =====================================================

Our reading of the paper (2026-11-18):

- With F unrestricted the theorem is false: `any_fitting` is exactly-once, state by state, for every
  system. So F restores only what is stored, and all else is recomputed, racing again.
- Its premise is that s and s′ can be distinguished: b₁ of one and b₂ of the other share no
  reference run (`in_premise`). Where they do, exactly-once may need no snapshot.
- Condition (1) cannot be read as printed. If Cl_D is not reflexive, b₁ ∉ G and each element that
  is derived from b₁ refutes it; if it is, b₁ ∈ G is derived from s ∉ G, which refutes it too; and
  if b₂ is not derived from b₁ at all, G is empty and it holds for systems that must recompute s.
    We read: Cl_D is reflexive, b₂ ∈ G, and what derives an element of G other than b₁ is in G.
- Each element has one derivation. With a second one beside that from b₁, (1) is refuted although
  restoring b₁ alone is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from cutwater.checking.explorer.model import always
from cutwater.checking.explorer.search import check_model
from cutwater.checking.guarantees.classify import together
from cutwater.semantics.delivery.model import DeliveryModel, Point
from cutwater.semantics.delivery.system import EMPTY, Bag, Change, Element, System, bag

__all__ = [
    "Derivation",
    "Race",
    "any_fitting",
    "has_recovery",
    "in_premise",
    "snapshot_condition",
]

Derivation = tuple[frozenset[str], str]
"""(u, v) ∈ D below s: the elements consumed, and the one element derived from them."""


@dataclass(frozen=True)
class Race:
    """A system in which one input is split and the order of its parts is a race (P2, Fig. 2)."""

    derivations: tuple[Derivation, ...]
    """What is derived from ``"s"``, in topological order."""
    first: str
    """b₁, which is released first."""
    second: str
    """b₂."""
    forgetful: frozenset[str] = frozenset()
    """Elements that are the same whether they come from s or from s′."""

    def system(self) -> System:
        """The system without a recovery: it cannot fail unless one is substituted."""
        return System("race", "none", self._transforms, self._leaving, lambda inputs, outputs: ())

    @property
    def inputs(self) -> tuple[Element, ...]:
        """The one input."""
        return (Element("in", "a"),)

    def element(self, name: str, branch: str) -> Element:
        """The element with a name in the branch ``""`` of s or ``"'"`` of s′."""
        kind = "out" if name in (self.first, self.second) else "inner"
        return Element(kind, name + (branch if name in self._telling else ""))

    @cached_property
    def _telling(self) -> set[str]:
        """The elements that distinguish s from s′."""
        telling = {"s"}
        for taken, made in self.derivations:
            if taken & telling and made not in self.forgetful:
                telling.add(made)
        return telling

    @cached_property
    def _rules(self) -> list[tuple[Bag, Element]]:
        """The derivations in both branches."""
        return [
            (bag(*(self.element(name, branch) for name in taken)), self.element(made, branch))
            for branch in ("", "'")
            for taken, made in self.derivations
        ]

    @cached_property
    def _firsts(self) -> set[Element]:
        return {self.element(self.first, branch) for branch in ("", "'")}

    def _transforms(self, working: Bag, outputs: Bag) -> Iterator[Change]:
        parts = bag(Element("inner", "x"), Element("inner", "y"))
        for a in working.of_kind("in"):
            yield bag(a), parts
        if parts <= working:
            yield from ((parts, bag(self.element("s", branch))) for branch in ("", "'"))
        there = working + outputs
        for needed, new in self._rules:
            if new not in there and needed <= there:
                kept = needed - (needed - working)  # states are read, not consumed
                yield needed, kept + bag(new)

    def _leaving(self, working: Bag, outputs: Bag) -> list[Element]:
        has_first = any(element in outputs for element in self._firsts)
        return [
            element for element in working.of_kind("out") if has_first or element in self._firsts
        ]


def _closure(derivations: Iterable[Derivation], start: str) -> set[str]:
    """Cl_D: what depends on an element, itself included."""
    found = {start}
    for taken, made in derivations:  # in topological order, so one pass is enough
        if taken & found:
            found.add(made)
    return found


def snapshot_condition(race: Race) -> bool:
    """Condition (1): can b₂ be derived from b₁, and from nothing else that depends on s?"""
    after_first = _closure(race.derivations, race.first)
    between = {v for v in after_first if race.second in _closure(race.derivations, v)}
    return race.second in between and all(
        taken <= between
        for taken, made in race.derivations
        if made in between and made != race.first
    )


def in_premise(race: Race) -> bool:
    """Do b₁ of s and b₂ of s′ share no reference run?"""
    model = DeliveryModel(race.system(), race.inputs, failures=0, is_reference=True)
    mixed = [
        bag(race.element(race.first, one), race.element(race.second, other))
        for one, other in (("", "'"), ("'", ""))
    ]

    def is_unmixed(point: Point) -> bool:
        return not any(outputs <= point.configuration.outputs for outputs in mixed)

    return check_model(model, [always("unmixed", is_unmixed)], reduce=False).holds


def has_recovery(race: Race) -> bool:
    """Is there an F with F(A, B) ⊆ A ∪ B that is exactly-once, and so still delivers b₂?

    Considers one failure. Then what F restores at one point does not affect another, and F exists
    if there is something to restore at each.
    """
    return all(
        any(_is_exactly_once_from(race, stored, working) for working in _within(*stored))
        for stored in _stored(race.system(), race.inputs)
    )


def _stored(system: System, inputs: Sequence[Element]) -> dict[tuple[Bag, Bag], set[Bag]]:
    """The (A, B) that a reference run can reach, each with its possible W."""
    found: dict[tuple[Bag, Bag], set[Bag]] = {}

    def note(point: Point) -> bool:
        c = point.configuration
        found.setdefault((c.inputs, c.outputs), set()).add(c.working)
        return True

    model = DeliveryModel(system, inputs, failures=0, is_reference=True)
    check_model(model, [always("noted", note)], reduce=False)
    return found


def _within(inputs: Bag, outputs: Bag) -> Iterator[Bag]:
    """The sub-multisets of A ∪ B."""
    stored = (inputs + outputs).elements
    for count in range(len(stored) + 1):
        yield from (bag(*chosen) for chosen in combinations(stored, count))


def _is_exactly_once_from(race: Race, stored: tuple[Bag, Bag], working: Bag) -> bool:
    """Is it exactly-once if it fails at this point only, and restores this?"""
    system = replace(race.system(), recover=lambda a, b: (working,) if (a, b) == stored else ())
    return together(DeliveryModel(system, race.inputs), "none").holds


def any_fitting(system: System, inputs: Sequence[Element]) -> System:
    """The system with F(A, B) = {W : (A, B, W) can be reached under F*}, and no restriction."""
    fitting = {at: tuple(sorted(ws, key=str)) for at, ws in _stored(system, inputs).items()}
    return replace(
        system,
        recovery="any working set that fits",
        recover=lambda a, b: fitting.get((a, b), (EMPTY,)),
    )
