"""Which delivery guarantees a system gives (P2, Definitions 5 to 8).

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
P(b | A, B, F) > 0                     some run of the model releases b next
Def. 5, b is consistent                `Reference.is_consistent`
Def. 6, exactly-once                   ``"exactly-once"``: the reference is the system with F*
Def. 7, at-most-once, A⁰               ``"at-most-once"``: and its input channel loses elements
Def. 8, at-least-once, A*              ``"at-least-once"``: and its input channel repeats them
=====================================  =====================================================

Our reading of the paper (2026-11-18): a definition holds if it does in three senses.

- **by state**: each output alone is consistent with the inputs and outputs before it. This is
  Definition 6 as printed. A system that never emits anything satisfies it.
- **at rest**: where nothing is left to do, the outputs are those of a reference run that has
  nothing left to do either ("are not lost").
- **by run**: one reference run explains the whole sequence of inputs and outputs, and rests where
  the run rests. (With reference runs xyz and yxw, each output of xyw alone is consistent.)

The first two follow from the third, and Definitions 7 and 8 from 6 (a flawed channel need not do
harm), so what is implied is not searched again. All are reported: they show the kind of failure.
Snapshots are stored and not visible, so they are not compared.

`classify` takes a system (Γ, D, F); `classify_model` any model that knows its reference and shows
what it has released.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from cutwater.checking.explorer.model import Model, always
from cutwater.checking.explorer.paths import Path
from cutwater.checking.explorer.search import Checked, Search, SearchProgress, check_model
from cutwater.checking.transparency.explainability import explainable
from cutwater.semantics.delivery.model import DeliveryModel, Flaw
from cutwater.semantics.delivery.system import Element, System

__all__ = [
    "GUARANTEES",
    "Classification",
    "Delivering",
    "DeliveryGuarantee",
    "Reference",
    "SenseVerdict",
    "Sight",
    "Verdicts",
    "classify",
    "classify_model",
    "each_alone",
    "together",
]

DeliveryGuarantee = Literal["exactly-once", "at-most-once", "at-least-once"]
GUARANTEES: dict[DeliveryGuarantee, Flaw] = {
    "exactly-once": "none",
    "at-most-once": "loses",
    "at-least-once": "repeats",
}
"""Each guarantee, and the flaw in the input channel of its reference."""


class Sight(Hashable, Protocol):
    """What an outside observer sees of a delivery."""

    @property
    def outputs(self) -> Hashable:
        """What consumers have seen."""

    @property
    def is_quiescent(self) -> bool:
        """Has it been observed that nothing is left to do?"""

    def is_before(self, other: Any, /) -> bool:
        """May this be seen earlier in a run than the other, or at the same time?"""


class Delivering(Model[Any, Any], Protocol):
    """A model that knows the failure-free runs it is compared with."""

    def reference(self, flaw: Flaw = "none") -> Any:
        """The model of these runs, with an input channel that may be flawed."""

    def observation(self, state: Any) -> Sight:
        """What an outside observer sees."""


@dataclass(frozen=True)
class SenseVerdict:
    """Whether one definition holds in one of its three senses."""

    holds: bool
    """Was no refutation found?"""
    is_exhaustive: bool
    """Was everything explored, on both sides?"""
    witness: Path[Any, Any] | None
    """The shrunk run that refutes it; its last step is the one that cannot be explained."""

    def __str__(self) -> str:
        if self.witness is not None:
            return "refuted by: " + "; ".join(map(str, self.witness.actions))
        return "holds" if self.is_exhaustive else "not refuted: the search was not exhaustive"


@dataclass(frozen=True)
class Verdicts:
    """Whether one definition holds, in each of its three senses."""

    by_state: SenseVerdict
    """Each output alone is consistent."""
    at_rest: SenseVerdict
    """The final outputs are those a reference run ends with."""
    by_run: SenseVerdict
    """One reference run explains the whole run."""

    @property
    def hold(self) -> bool:
        """Does it hold in every sense?"""
        return self.by_state.holds and self.at_rest.holds and self.by_run.holds

    @property
    def is_settled(self) -> bool:
        """Is it refuted, or was everything explored?"""
        return self.by_run.is_exhaustive or not self.hold


@dataclass(frozen=True)
class Classification:
    """The guarantees that a system gives."""

    verdicts: dict[DeliveryGuarantee, Verdicts]
    """The verdicts on each guarantee."""

    @property
    def guarantees(self) -> frozenset[DeliveryGuarantee]:
        """The strongest that hold: exactly-once alone, or any of the two it implies."""
        found = frozenset(g for g, verdicts in self.verdicts.items() if verdicts.hold)
        return frozenset({"exactly-once"}) if "exactly-once" in found else found

    @property
    def is_settled(self) -> bool:
        """Is each guarantee refuted, or was everything explored?"""
        return all(verdicts.is_settled for verdicts in self.verdicts.values())

    def __str__(self) -> str:
        return " and ".join(g for g in GUARANTEES if g in self.guarantees) or "none"


class _Towards:
    """A model that continues only while it may still show what was seen of another."""

    def __init__(self, model: Any, wanted: Iterable[Sight]) -> None:
        self.model, self.wanted = model, dict.fromkeys(wanted)
        self.initial_states, self.step = model.initial_states, model.step
        self._is_near: dict[Sight, bool] = {}

    def actions(self, state: Any) -> Iterable[Any]:
        seen = self.model.observation(state)
        if seen not in self._is_near:
            self._is_near[seen] = seen in self.wanted or any(map(seen.is_before, self.wanted))
        return self.model.actions(state) if self._is_near[seen] else []


class Reference:
    """What is seen of a reference, state by state, as far as it may match a model."""

    def __init__(self, model: Delivering, flaw: Flaw = "none", **bounds: Any) -> None:
        self._reference = model.reference(flaw)
        self._next: set[tuple[Sight, Hashable]] = set()
        self._quiescent: set[Sight] = set()
        wanted: dict[Sight, None] = {}
        look = always("seen", lambda state: wanted.setdefault(model.observation(state)) is None)
        mine = check_model(model, [look], reduce=False, **bounds)
        visit = always("visited", self._visit)
        theirs = check_model(_Towards(self._reference, wanted), [visit], reduce=False, **bounds)
        self.is_exhaustive = mine.is_exhaustive and theirs.is_exhaustive
        """Were both the model and the reference explored in full?"""

    def _visit(self, state: Any) -> bool:
        seen = self._reference.observation(state)
        if seen.is_quiescent:
            self._quiescent.add(seen)
        for action in self._reference.actions(state):
            there = self._reference.observation(self._reference.step(state, action))
            if there.outputs != seen.outputs:
                self._next.add((seen, there.outputs))
        return True

    def is_consistent(self, seen: Sight, outputs: Hashable) -> bool:
        """Definition 5: may these be the outputs after the next one, given what was seen?"""
        return (seen, outputs) in self._next

    def may_be_quiescent(self, seen: Sight) -> bool:
        """May a reference run have nothing left to do when this is seen?"""
        return seen in self._quiescent


class _Judged(msgspec.Struct, frozen=True, cache_hash=True):
    """A state, and whether the output that led to it was consistent."""

    state: Any
    is_consistent: bool = True


class _Judging:
    """A model whose outputs are compared with a reference, one by one."""

    def __init__(self, model: Delivering, reference: Reference) -> None:
        self.model, self.reference = model, reference

    def initial_states(self) -> Iterable[_Judged]:
        return [_Judged(state) for state in self.model.initial_states()]

    def actions(self, judged: _Judged) -> Iterable[Any]:
        return self.model.actions(judged.state)

    def step(self, judged: _Judged, action: Any) -> _Judged:
        there = self.model.step(judged.state, action)
        before, after = map(self.model.observation, (judged.state, there))
        if after.outputs == before.outputs:
            return _Judged(there)
        return _Judged(there, self.reference.is_consistent(before, after.outputs))

    def is_quiescent_alike(self, judged: _Judged) -> bool:
        seen = self.model.observation(judged.state)
        return not seen.is_quiescent or self.reference.may_be_quiescent(seen)


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
    progress: Callable[[SearchProgress], None] | None = None,
) -> Classification:
    """Which guarantees a system gives on some inputs, with at most `failures` failures.

    Parameters
    ----------
    system, inputs, failures
        The system to run, its inputs in the order they enter, and the most failures.
    search, max_states, max_depth, walks, seed, progress
        As in `check`. By state, system and reference are searched breadth-first, under the same
        bounds; where a bound is reached, nothing is refuted in this sense.

    Examples
    --------
    >>> from cutwater.semantics.delivery.epochs import flink_epochs
    >>> from cutwater.semantics.delivery.histories import letters
    >>> print(classify(flink_epochs(), letters("ab")))
    exactly-once
    >>> print(classify(flink_epochs("replay from an older offset"), letters("ab")))
    at-least-once
    """
    options = {
        "search": search,
        "max_states": max_states,
        "max_depth": max_depth,
        "walks": walks,
        "seed": seed,
        "progress": progress,
    }
    return classify_model(DeliveryModel(system, inputs, failures=failures), **options)


def classify_model(model: Delivering, **options: Any) -> Classification:
    """Which guarantees a model gives; options are those of `check`."""
    verdicts: dict[DeliveryGuarantee, Verdicts] = {}
    for guarantee, flaw in GUARANTEES.items():
        exactly = verdicts.get("exactly-once")
        if exactly and exactly.hold and exactly.is_settled:
            verdicts[guarantee] = exactly
        else:
            verdicts[guarantee] = _verdicts(model, flaw, options)
    return Classification(verdicts)


def _verdicts(model: Delivering, flaw: Flaw, options: dict[str, Any]) -> Verdicts:
    by_run = together(model, flaw, **options)
    if by_run.holds and by_run.is_exhaustive:
        return Verdicts(by_run, by_run, by_run)
    by_state, at_rest = each_alone(model, flaw, **options)
    return Verdicts(by_state, at_rest, by_run)


def each_alone(model: Delivering, flaw: Flaw, **options: Any) -> tuple[SenseVerdict, SenseVerdict]:
    """Are outputs consistent by state, and at rest? Options are those of `check`."""
    bounds = {name: options.get(name) for name in ("max_states", "max_depth", "progress")}
    reference = Reference(model, flaw, **bounds)
    judging = _Judging(model, reference)
    by_state = always("each output is consistent", lambda judged: judged.is_consistent)
    at_rest = always("the final outputs are those of a reference run", judging.is_quiescent_alike)
    claims = [by_state, at_rest] if reference.is_exhaustive else []
    checked = check_model(judging, claims, **options)
    both = reference.is_exhaustive and checked.is_exhaustive
    return _verdict(checked, by_state.name, both), _verdict(checked, at_rest.name, both)


def _verdict(checked: Checked, claim: str, is_exhaustive: bool) -> SenseVerdict:
    found = checked.discoveries.get(claim)
    if found is None:
        return SenseVerdict(True, is_exhaustive, None)
    states = tuple(judged.state for judged in found.path.states)
    return SenseVerdict(False, is_exhaustive, Path(states[0], found.path.actions, states))


def together(model: Delivering, flaw: Flaw, **options: Any) -> SenseVerdict:
    """Is each run explained by one run of the reference? Options are those of `check`."""
    found = explainable(model, model.reference(flaw), order=_is_before, **options)
    return SenseVerdict(found.holds, found.checked.is_exhaustive, found.counterexample)


def _is_before(seen: Sight, later: Sight) -> bool:
    return seen.is_before(later)
