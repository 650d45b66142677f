"""Do one model's runs look like another's? Explainability, failure transparency (P1, 5).

=====================================  =====================================================
P1                                     here
=====================================  =====================================================
observability function O (5.3)         any function of states; see `monotonicity`
explanation, monotone (5.4, 5.6)       `is_explained`, `is_monotonically_explained`, on sequences
                                       of observations
R explainable by R' under T (5.5)      `explainable`
failure transparency (5.10)            `failure_transparency`, with `without` for R \\ F; O has
                                       to be monotone
O'' ∘ O (5.9)                          `view`: a function applied to what a model shows
=====================================  =====================================================

Definition 5.5 is about runs: for every execution there is *one* execution that explains it. So the
model is run beside the set of those configurations of the other model that can have shown the same
observations in the same order; where the set is empty, the run so far is the counterexample. In
between, the other model may show more (Definition 5.4 only requires that what was seen can be
seen).

Lemma 5.7 needs the same order on both sides; the search requires a monotone explanation, which the
lemma derives from an explanation if observations do not recur.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import msgspec

from cutwater.checking.explorer.model import Model, always
from cutwater.checking.explorer.paths import Path
from cutwater.checking.explorer.reduction import ample_by, can_reduce, is_acyclic
from cutwater.checking.explorer.search import Checked, check_model
from cutwater.checking.transparency.monotonicity import (
    Monotonicity,
    ObservationOrder,
    Observe,
    Steps,
    monotonicity,
    refuse_no_order,
)

__all__ = [
    "Explainability",
    "View",
    "explainable",
    "failure_transparency",
    "is_explained",
    "is_monotonically_explained",
    "is_unexplained",
    "view",
    "without",
]


@dataclass(frozen=True)
class View:
    """A function of what a model shows: reductions that preserve the latter preserve this, too."""

    model: Any
    f: Callable[[Any], Hashable]

    def __call__(self, state: Any) -> Hashable:
        """What is seen of a state through the function."""
        return self.f(self.model.observation(state))


def view(model: Any, f: Callable[[Any], Hashable]) -> View:
    """The observability function ``f ∘ model.observation`` (P1, Lemma 5.9)."""
    return View(model, f)


@dataclass(frozen=True)
class Explainability:
    """Whether every run of a model is explained, and how far that was explored."""

    checked: Checked
    claim: str
    monotone: Monotonicity | None = None
    """Whether what is observed only grows (Definition 5.10); None if that was not checked."""

    @property
    def holds(self) -> bool:
        """Was every run explained, and no observation retracted?"""
        return self.checked.holds and (self.monotone is None or self.monotone.holds)

    @property
    def counterexample(self) -> Path[Any, Any] | None:
        """A run that nothing explains, with the states of the model itself.

        If every run is explained but an observation is retracted, the run that retracts it.
        """
        found = self.checked.discoveries.get(self.claim)
        if found is None:
            return self.monotone.counterexample if self.monotone else None
        states = tuple(state.state for state in found.path.states)
        return Path(states[0], found.path.actions, states)


def is_explained(seen: Sequence[Hashable], explaining: Sequence[Hashable]) -> bool:
    """Definition 5.4, for the observations of two executions."""
    return set(seen) <= set(explaining)


def is_monotonically_explained(seen: Sequence[Hashable], explaining: Sequence[Hashable]) -> bool:
    """Definition 5.6: and in the same order."""
    at = 0
    for observation in seen:
        while at < len(explaining) and explaining[at] != observation:
            at += 1
        if at == len(explaining):
            return False
    return True


class _Beside(msgspec.Struct, frozen=True, cache_hash=True):
    """A state, and the states the other model can be in, given what was shown."""

    state: Any
    candidates: frozenset[Any]


class _Explaining:
    """A model run beside the set of candidates of another: a subset construction."""

    def __init__(
        self,
        model: Any,
        other: Any,
        observe: Observe,
        observe_other: Observe,
        translation: Iterable[tuple[Any, Any]],
        order: ObservationOrder | None,
        reduce: bool,
    ) -> None:
        self.model, self.observe = model, observe
        self.steps = Steps()
        self.translation = tuple(translation)
        self.candidates = _Candidates(other, observe_other, order, reduce)
        self.is_acyclic = is_acyclic(model)
        if can_reduce(model) and _is_of(observe, model):
            self.ample = lambda beside, actions: ample_by(model)(beside.state, actions)

    def initial_states(self) -> Iterable[_Beside]:
        for theirs, mine in self.translation:
            yield _Beside(mine, self.candidates.showing(frozenset([theirs]), self.observe(mine)))

    def actions(self, beside: _Beside) -> Iterable[Any]:
        return self.model.actions(beside.state) if beside.candidates else ()

    def step(self, beside: _Beside, action: Any) -> _Beside:
        there = self.model.step(beside.state, action)
        seen = self.observe(there)
        before = self.observe(beside.state)
        if seen == before:
            return _Beside(there, beside.candidates)
        self.steps.add(before, seen)
        return _Beside(there, self.candidates.showing(beside.candidates, seen))

    def observation(self, beside: _Beside) -> Hashable:
        return bool(beside.candidates)

    def observed(self) -> Iterable[Hashable]:
        """What was observed of either model."""
        return chain(self.steps.observed(), self.candidates.seen.values())


class _Candidates:
    """The states of a model in which an observation can be seen next."""

    def __init__(
        self, model: Any, observe: Observe, order: ObservationOrder | None, reduce: bool
    ) -> None:
        self._model, self._observe, self._order = model, observe, order
        self._known: dict[tuple[frozenset[Any], Hashable], frozenset[Any]] = {}
        self._next: dict[Any, list[Any]] = {}
        self.seen: dict[Any, Hashable] = {}
        is_reduced = reduce and is_acyclic(model) and can_reduce(model) and _is_of(observe, model)
        self._ample = ample_by(model) if is_reduced else None

    def showing(self, starts: frozenset[Any], wanted: Hashable) -> frozenset[Any]:
        """The first states on any path from the starts that show the wanted observation."""
        if (starts, wanted) not in self._known:
            self._known[starts, wanted] = frozenset(self._search(starts, wanted))
        return self._known[starts, wanted]

    def _search(self, starts: Iterable[Any], wanted: Hashable) -> Iterable[Any]:
        known = set(starts)
        waiting = list(known)
        while waiting:
            state = waiting.pop()
            seen = self._look(state)
            if seen == wanted:
                yield state
                continue
            if self._order is not None and not self._order(seen, wanted):
                continue
            for there in self._successors(state):
                if there not in known:
                    known.add(there)
                    waiting.append(there)

    def _look(self, state: Any) -> Hashable:
        if state not in self.seen:
            self.seen[state] = self._observe(state)
        return self.seen[state]

    def _successors(self, state: Any) -> list[Any]:
        if state not in self._next:
            actions = list(self._model.actions(state))
            if self._ample is not None and len(actions) > 1:
                actions = list(self._ample(state, actions) or actions)
            self._next[state] = [self._model.step(state, action) for action in actions]
        return self._next[state]


def _is_of(observe: Observe, model: Any) -> bool:
    """Does it observe what the model shows, or a function of that?"""
    is_view = isinstance(observe, View) and observe.model is model
    return is_view or observe == getattr(model, "observation", None)


def explainable(
    model: Model[Any, Any],
    other: Model[Any, Any],
    *,
    observe: Observe | None = None,
    observe_other: Observe | None = None,
    translation: Iterable[tuple[Any, Any]] | None = None,
    order: ObservationOrder | None = None,
    reduce: bool = True,
    **search: Any,
) -> Explainability:
    """Definition 5.5: is every run of a model explained by a run of the other?

    Parameters
    ----------
    model, other
        R and R'.
    observe, observe_other
        O and O'; default: what the models themselves show.
    translation
        T: pairs of a state of `other` and a state of `model` at which runs begin; default: their
        initial states, paired.
    order
        An order in which both observe monotonically, if known: it prunes states from which an
        observation is out of reach. `InputError` if it is not a partial order.
    reduce
        Whether to skip interleavings that no observer can distinguish, on both sides, where the
        models allow it and are observed through what they show.
    search
        Options of `check`: bounds, order of search, seed, progress.
    """
    return _explained(model, other, observe, observe_other, translation, order, reduce, **search)[0]


def _explained(
    model: Any,
    other: Any,
    observe: Observe | None,
    observe_other: Observe | None,
    translation: Iterable[tuple[Any, Any]] | None,
    order: ObservationOrder | None,
    reduce: bool = True,
    **search: Any,
) -> tuple[Explainability, Steps]:
    """The verdict, and the pairs of observations in the order they were seen."""
    claim = "every run is explained"
    explaining = _Explaining(
        model,
        other,
        observe or model.observation,
        observe_other or other.observation,
        zip(other.initial_states(), model.initial_states(), strict=True)
        if translation is None
        else translation,
        order,
        reduce,
    )
    claims = [always(claim, bool, observed=True)]
    found = check_model(explaining, claims, reduce=reduce, **search)
    if order is not None:
        refuse_no_order(order, explaining.observed())
    return Explainability(found, claim), explaining.steps


def is_unexplained(
    model: Model[Any, Any],
    other: Model[Any, Any],
    actions: Sequence[Any],
    *,
    order: ObservationOrder | None = None,
) -> bool:
    """Can the model take these actions, and does no run of the other explain that run?

    With `order`, as in `explainable`, less of the other model is explored.
    """
    explaining = _Explaining(
        model,
        other,
        model.observation,  # type: ignore[attr-defined]
        other.observation,  # type: ignore[attr-defined]
        zip(other.initial_states(), model.initial_states(), strict=True),
        order,
        reduce=True,
    )
    for start in explaining.initial_states():
        here = start
        for action in actions:
            if action not in list(model.actions(here.state)):
                break
            here = explaining.step(here, action)
        else:
            if not here.candidates:
                return True
    return False


class _Without:
    """A model that never takes some actions."""

    def __init__(self, model: Any, is_failure: Callable[[Any], bool]) -> None:
        self.model, self.is_failure = model, is_failure
        self.initial_states = model.initial_states
        self.step = model.step
        if hasattr(model, "observation"):
            self.observation = model.observation

    def actions(self, state: Any) -> list[Any]:
        return [action for action in self.model.actions(state) if not self.is_failure(action)]


def without(model: Model[Any, Any], is_failure: Callable[[Any], bool]) -> Model[Any, Any]:
    """R \\ F: the model without its failures."""
    return _Without(model, is_failure)


def failure_transparency(
    model: Model[Any, Any],
    failure_free: Model[Any, Any],
    *,
    observe: Observe | None = None,
    order: ObservationOrder | None = None,
    **search: Any,
) -> Explainability:
    """Definition 5.10: is every run with failures explained by one without?

    The failure-free model starts where the model starts; both are observed alike. See `without`.
    What is observed has to be monotone (`monotonicity`): a run that retracts an earlier
    observation is a counterexample, too.
    """
    found, steps = _explained(
        model,
        failure_free,
        observe,
        observe and _for_other(observe, failure_free),
        None,
        order,
        **search,
    )
    if steps.is_monotone(order):
        return found
    shown = observe or model.observation  # type: ignore[attr-defined]
    return replace(found, monotone=monotonicity(model, shown, order=order))


def _for_other(observe: Observe, other: Any) -> Observe:
    return View(other, observe.f) if isinstance(observe, View) else observe
