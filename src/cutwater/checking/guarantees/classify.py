"""Which delivery guarantees a system gives (P2, Definitions 5 to 8).

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
P(b | A, B, F) > 0                     there is a run of `DeliveryModel` in which b leaves next
Def. 5, b is consistent                `Reference.is_consistent`
Def. 6, exactly-once                   ``"exactly-once"``: the reference is the system with F*
Def. 7, at-most-once, A⁰               ``"at-most-once"``: and its input channel loses
Def. 8, at-least-once, A*              ``"at-least-once"``: and its input channel repeats
=====================================  =====================================================

Where we read the paper our way (2026-11-18): a definition holds if three things do.

- **by state**: each output alone is consistent with the inputs and outputs before it. This is
  Definition 6 as printed. A system that never says anything has it.
- **at rest**: where nothing is left to do, the outputs are those of a reference run that has
  nothing left to do either ("are not lost").
- **by run**: one reference run explains the whole sequence of inputs and outputs, and rests where
  the run rests. (With reference runs xyz and yxw, each output of xyw alone is consistent.)

The first two follow from the third; all are reported, because they say what kind of failure it is.
Snapshots are stored and not shown, so they are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from cutwater.checking.explorer.model import always
from cutwater.checking.explorer.paths import Path
from cutwater.checking.explorer.search import Checked, Progress, Search, check
from cutwater.checking.transparency.explainability import explainable
from cutwater.semantics.delivery import Element, System
from cutwater.semantics.delivery_model import DeliveryModel, Flaw, Output, Point, Seen, Step

__all__ = ["GUARANTEES", "Classification", "Guarantee", "Reference", "Verdict", "classify"]

Guarantee = Literal["exactly-once", "at-most-once", "at-least-once"]
GUARANTEES: dict[Guarantee, Flaw] = {
    "exactly-once": "none",
    "at-most-once": "loses",
    "at-least-once": "repeats",
}
"""Each guarantee, and the flaw that the input channel of its reference has."""


@dataclass(frozen=True)
class Verdict:
    """Whether one definition holds in one of its three senses."""

    holds: bool
    """Was nothing found that refutes it?"""
    is_exhaustive: bool
    """Was everything looked at, on both sides?"""
    witness: Path[Point, Step] | None
    """The shrunk run that refutes it; its last step is the one that cannot be explained."""

    def __str__(self) -> str:
        if self.witness is not None:
            return "refuted by: " + "; ".join(map(str, self.witness.actions))
        return "holds" if self.is_exhaustive else "not refuted: the search was not exhaustive"


@dataclass(frozen=True)
class Classification:
    """What was found of a system."""

    system: System
    by_state: dict[Guarantee, Verdict] = field(default_factory=dict)
    """Each output alone is consistent."""
    at_rest: dict[Guarantee, Verdict] = field(default_factory=dict)
    """What is there in the end is what a reference run ends with."""
    by_run: dict[Guarantee, Verdict] = field(default_factory=dict)
    """One reference run explains all of it."""

    def has(self, guarantee: Guarantee) -> bool:
        """Does it hold in every sense?"""
        senses = (self.by_state, self.at_rest, self.by_run)
        return all(verdicts[guarantee].holds for verdicts in senses)

    @property
    def guarantees(self) -> frozenset[Guarantee]:
        """The strongest that hold: exactly-once alone, or any of the two that it implies."""
        if self.has("exactly-once"):
            return frozenset({"exactly-once"})
        return frozenset(guarantee for guarantee in GUARANTEES if self.has(guarantee))

    @property
    def is_exhaustive(self) -> bool:
        """Was everything looked at?"""
        senses = (self.by_state, self.at_rest, self.by_run)
        return all(
            v.is_exhaustive or v.witness for verdicts in senses for v in verdicts.values()
        )

    def __str__(self) -> str:
        return " and ".join(g for g in GUARANTEES if g in self.guarantees) or "none"


class Reference:
    """What can be seen of a reference, state by state."""

    def __init__(self, model: DeliveryModel, **search: Any) -> None:
        self._model = model
        self._next: set[tuple[Any, Element]] = set()
        self._resting: set[Any] = set()
        visit = always("visited", self._visit)
        self.is_exhaustive = check(model, [visit], reduce=False, **search).is_exhaustive
        """Was all of the reference looked at?"""

    def _visit(self, point: Point) -> bool:
        seen = self._model.observation(point)
        if point.is_resting:
            self._resting.add(seen)
        for step in self._model.actions(point):
            if isinstance(step, Output):
                self._next.add((seen, step.element))
        return True

    def is_consistent(self, seen: Any, output: Element) -> bool:
        """Definition 5: may this output come next where this was seen?"""
        return (seen, output) in self._next

    def may_rest(self, seen: Any) -> bool:
        """May a reference run have nothing left to do where this is seen?"""
        return seen in self._resting


class _Judged(msgspec.Struct, frozen=True, cache_hash=True):
    """A point, and whether the output that led to it was consistent."""

    point: Point
    is_consistent: bool = True


class _Judging:
    """A model whose outputs are compared with a reference, one by one."""

    def __init__(self, model: DeliveryModel, reference: Reference) -> None:
        self.model, self.reference = model, reference

    def initial_states(self) -> Iterable[_Judged]:
        return [_Judged(point) for point in self.model.initial_states()]

    def actions(self, judged: _Judged) -> list[Step]:
        return self.model.actions(judged.point)

    def step(self, judged: _Judged, action: Step) -> _Judged:
        there = self.model.step(judged.point, action)
        if not isinstance(action, Output) or action.element.kind not in self.model.system.shown:
            return _Judged(there)
        seen = self.model.observation(judged.point)
        return _Judged(there, self.reference.is_consistent(seen, action.element))

    def is_at_rest_alike(self, judged: _Judged) -> bool:
        point = judged.point
        seen = self.model.observation(point)
        return not point.is_resting or self.reference.may_rest(seen)


def classify(
    system: System,
    inputs: Sequence[Element],
    *,
    failures: int = 1,
    search: Search = "breadth",
    max_states: int | None = None,
    max_depth: int | None = None,
    walks: int = 100,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> Classification:
    """Which guarantees a system gives on some inputs, with so many failures at most.

    Parameters
    ----------
    system, inputs, failures
        What is run. Inputs enter in the order given.
    search, max_states, max_depth, walks, seed, progress
        As in `check`. The reference is always searched in breadth, under the same bounds; where
        it meets one, nothing is refuted state by state.

    Examples
    --------
    >>> from cutwater.semantics.delivery_systems import flink_epochs, letters
    >>> print(classify(flink_epochs(), letters("ab")))
    exactly-once
    >>> print(classify(flink_epochs("replay from an older offset"), letters("ab")))
    at-least-once
    """
    bounds: dict[str, Any] = dict(max_states=max_states, max_depth=max_depth, progress=progress)
    options = dict(bounds, search=search, walks=walks, seed=seed)
    model = DeliveryModel(system, inputs, failures=failures)
    found = Classification(system)
    for guarantee, flaw in GUARANTEES.items():
        reference = model.reference(flaw)
        by_state, at_rest = _each_alone(model, Reference(reference, **bounds), options)
        found.by_state[guarantee], found.at_rest[guarantee] = by_state, at_rest
        found.by_run[guarantee] = _together(model, reference, options)
    return found


def _each_alone(
    model: DeliveryModel, reference: Reference, options: dict[str, Any]
) -> tuple[Verdict, Verdict]:
    judging = _Judging(model, reference)
    by_state = always("each output is consistent", lambda judged: judged.is_consistent)
    at_rest = always("nothing is lost or too much", judging.is_at_rest_alike)
    claims = [by_state, at_rest] if reference.is_exhaustive else []
    checked = check(judging, claims, **options)
    both = reference.is_exhaustive and checked.is_exhaustive
    return _verdict(checked, by_state.name, both), _verdict(checked, at_rest.name, both)


def _verdict(checked: Checked, claim: str, is_exhaustive: bool) -> Verdict:
    found = checked.discoveries.get(claim)
    if found is None:
        return Verdict(True, is_exhaustive, None)
    states = tuple(judged.point for judged in found.path.states)
    return Verdict(False, is_exhaustive, Path(states[0], found.path.actions, states))


def _together(model: DeliveryModel, reference: DeliveryModel, options: dict[str, Any]) -> Verdict:
    found = explainable(model, reference, order=Seen.is_before, reduce=False, **options)
    return Verdict(found.holds, found.checked.is_exhaustive, found.counterexample)
