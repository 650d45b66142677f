"""The search of the model checker: every state once, in one of three orders.

By hand, since TLC and its like check models in a language of their own: these models run the
user's Python functions.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from cutwater.checking.explorer.known import Known
from cutwater.checking.explorer.liveness import unfulfilled
from cutwater.checking.explorer.model import A, Model, Property, S
from cutwater.checking.explorer.paths import Path, shrink
from cutwater.checking.explorer.reduction import (
    Ample,
    ample_by,
    can_reduce,
    can_sleep,
    is_acyclic,
)
from cutwater.checking.explorer.sleep_sets import SleepSets
from cutwater.errors import InputError, Problem

__all__ = ["Checked", "Discovery", "Search", "SearchProgress", "check_model"]

Search = Literal["breadth", "depth", "random"]


@dataclass(frozen=True)
class SearchProgress:
    """The progress of a search."""

    unique_states: int
    waiting: int
    """States found but not yet expanded."""
    depth: int


@dataclass(frozen=True)
class Discovery:
    """A path that decides a property: a counterexample, or an example for `sometimes`."""

    claim: Property
    path: Path[Any, Any]
    seed: int

    @property
    def is_counterexample(self) -> bool:
        """Does it refute the property?"""
        return self.claim.kind != "sometimes"


@dataclass(frozen=True)
class Checked:
    """The result of a search; a counterexample is a result, never an exception."""

    unique_states: int
    transitions: int
    """Steps taken, those to known states included."""
    depth: int
    """Length of the longest path the search followed."""
    is_exhaustive: bool
    """Was every reachable state (of the reduced model, if reduced) visited?"""
    stopped: Literal["", "at the bound", "interrupted", "at the first counterexample"]
    """Why the search ended early; empty: it did not."""
    is_reduced: bool
    properties: tuple[Property, ...]
    discoveries: dict[str, Discovery] = field(default_factory=dict)
    """By the name of their property."""

    @property
    def holds(self) -> bool:
        """Was nothing found that refutes a property?"""
        return not any(self.is_refuted(claim) for claim in self.properties)

    def is_refuted(self, claim: Property) -> bool:
        """Is it known that the property does not hold?"""
        if claim.kind == "sometimes":
            return self.is_exhaustive and claim.name not in self.discoveries
        return claim.name in self.discoveries

    def verdict(self, claim: Property) -> str:
        """What is known of a property, as a phrase."""
        if self.is_refuted(claim):
            is_shown = claim.name in self.discoveries
            return "does not hold" + (": there is a counterexample" if is_shown else "")
        if claim.kind == "sometimes" and claim.name in self.discoveries:
            return "holds: there is an example"
        return "holds" if self.is_exhaustive else "not refuted: the search was not exhaustive"

    def summary(self) -> str:
        """How far the search went, as a phrase."""
        count = f"{self.unique_states:,} states"
        if self.is_exhaustive:
            return f"explored all {count}" + (" of the reduced model" if self.is_reduced else "")
        if self.stopped == "interrupted":
            return f"interrupted after {count}: not exhaustive"
        if self.stopped == "at the first counterexample":
            is_refuted = any(found.is_counterexample for found in self.discoveries.values())
            return f"stopped after {count}, " + (
                self.stopped if is_refuted else "once every claim was settled"
            )
        return f"stopped at the bound after {count}: not exhaustive"


def check_model(
    model: Model[S, A],
    properties: Sequence[Property] = (),
    *,
    search: Search = "breadth",
    max_states: int | None = None,
    max_depth: int | None = None,
    walks: int = 100,
    seed: int = 0,
    reduce: bool = True,
    stop_early: bool = True,
    symmetric: Callable[[Any], Any] | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
) -> Checked:
    """Explore the states of a model and look for paths that decide its properties.

    Parameters
    ----------
    model
        Anything with ``initial_states()``, ``actions(state)`` and ``step(state, action)``.
    properties
        From `always`, `sometimes` and `eventually`; with none the states are only counted.
    search
        ``"breadth"`` finds the shortest counterexamples; ``"depth"`` needs less memory for its
        queue; ``"random"`` walks at random, for models too large to exhaust. Counterexamples of
        the latter two are shrunk.
    max_states, max_depth
        Bounds; a search that reaches one reports that it is not exhaustive. A random walk has at
        most 1,000 steps if `max_depth` is not given.
    walks, seed
        For ``"random"``: the number of walks, and the seed they are drawn from. The same seed
        gives the same result.
    reduce
        Whether to skip interleavings that no observer can distinguish. It applies where the model
        allows it and every property is about observations; never to `eventually`. Otherwise a
        breadth-first search takes two independent actions in one order only where both orders
        lead to one state: every state is visited, in fewer steps.
    stop_early
        Whether to stop once every property is decided.
    symmetric
        Symmetry reduction: state -> a representative of all states that differ only in which of
        several like parts is which, for instance with the parts sorted. Of all states with one
        representative only the first that is found is expanded. A property must have the same
        value on all of them. Not allowed with `eventually`, whose fairness distinguishes the
        parts, nor with ``"random"``; no other reduction applies then.
    progress
        Called periodically. Ctrl-C ends the search and keeps its discoveries.
    """
    if search not in ("breadth", "depth", "random"):
        raise InputError(
            Problem("unknown-search", f"there is no search {search!r}", "breadth, depth or random")
        )
    names = [claim.name for claim in properties]
    if len(set(names)) < len(names):
        raise InputError(
            Problem(
                "duplicate-property",
                f"two properties have one name: {', '.join(names)}; findings are listed by name",
                "give each a name of its own",
            )
        )
    if symmetric is not None:
        _refuse_symmetry(properties, search)
    return _Search(
        model,
        tuple(properties),
        search,
        max_states,
        max_depth,
        seed,
        reduce,
        stop_early,
        progress,
        symmetric,
    ).run(walks)


def _refuse_symmetry(properties: Sequence[Property], search: Search) -> None:
    used = [claim.name for claim in properties if claim.kind == "eventually"]
    if used or search == "random":
        what = f"the claim '{used[0]}', made by eventually" if used else "a random search"
        raise InputError(
            Problem(
                "no-symmetry",
                f"symmetric= cannot be combined with {what}",
                "leave symmetric= out, or check it separately",
            )
        )


_EVERY = 2_000
"""Steps between two reports of progress."""
_AT_ONCE = 100
"""States that are expanded per batch where no property can end the search in between."""
_LONGEST_WALK = 1_000
"""Steps of a random walk without a bound: a model may run for ever."""


class _Search:
    def __init__(
        self,
        model: Model[Any, Any],
        properties: tuple[Property, ...],
        search: Search,
        max_states: int | None,
        max_depth: int | None,
        seed: int,
        reduce: bool,
        stop_early: bool,
        progress: Callable[[SearchProgress], None] | None,
        symmetric: Callable[[Any], Any] | None = None,
    ) -> None:
        self.model, self.properties, self.order, self.seed = model, properties, search, seed
        self.max_states, self.max_depth = max_states, max_depth
        self.stop_early, self.progress = stop_early, progress
        self.safety = [claim for claim in properties if claim.kind != "eventually"]
        self.liveness = [claim for claim in properties if claim.kind == "eventually"]
        self.can_settle = stop_early and bool(properties) and not self.liveness
        self.symmetric = symmetric
        self.is_reduced = (
            reduce
            and symmetric is None
            and can_reduce(model)
            and not self.liveness
            and all(claim.is_of_observation for claim in properties)
        )
        self.ample: Ample | None = ample_by(model) if self.is_reduced else None
        self.is_acyclic = is_acyclic(model)
        self.known = Known(symmetric)
        self.sleep_sets = SleepSets(model, self.known) if self._can_sleep(reduce) else None
        self.found: dict[str, Discovery] = {}
        self.transitions = self.depth = 0
        self.is_cut = False

    def _can_sleep(self, reduce: bool) -> bool:
        """May orders of independent actions be skipped if they lead to the same states?"""
        is_plain = not (self.is_reduced or self.liveness or self.symmetric)
        return reduce and is_plain and self.order == "breadth" and can_sleep(self.model)

    def run(self, walks: int) -> Checked:
        stopped: Literal["", "at the bound", "interrupted", "at the first counterexample"] = ""
        try:
            with _without_collections():
                is_settled = self._walk(walks) if self.order == "random" else self._explore()
            if is_settled:
                stopped = "at the first counterexample"
            elif self.is_cut:
                stopped = "at the bound"
        except KeyboardInterrupt:
            stopped = "interrupted"
        if stopped != "interrupted":
            self._check_liveness()
        is_exhaustive = not stopped and self.order != "random"
        return Checked(
            len(self.known),
            self.transitions,
            self.depth,
            is_exhaustive,
            stopped if is_exhaustive or stopped else "at the bound",
            self.is_reduced or self.symmetric is not None,
            self.properties,
            self.found,
        )

    def _explore(self) -> bool:
        """Visit every state once; True if it ended because every property is decided."""
        for state in self.model.initial_states():
            self.known.enter(state)
        self._look(0)
        return self._in_breadth() if self.order == "breadth" else self._in_depth()

    def _in_breadth(self) -> bool:
        states, first = self.known.states, 0
        at_once = 1 if self.can_settle or self.max_depth is not None else _AT_ONCE
        while first < len(states) and not self._is_settled():
            last = min(first + at_once, len(states))
            self._expand(range(first, last), len(states) - last)
            first = last
        return self._is_settled()

    def _in_depth(self) -> bool:
        waiting = list(range(len(self.known)))
        while waiting and not self._is_settled():
            number, first = waiting.pop(), len(self.known)
            self._expand(range(number, number + 1), len(waiting))
            waiting.extend(range(first, len(self.known)))
        return self._is_settled()

    def _expand(self, numbers: range, waiting: int) -> None:
        """Take the actions of states, and check the states that are new."""
        known, first = self.known, len(self.known)
        self.depth = max(self.depth, known.depths[numbers[-1]])
        taken, is_whole = self._enter_all(numbers)
        self.transitions += taken
        self.is_cut = self.is_cut or not is_whole
        self._look(first)
        if self.progress and self.transitions // _EVERY != self._reported:
            self._reported = self.transitions // _EVERY
            self.progress(SearchProgress(len(known), waiting + len(known) - first, self.depth))

    _reported = 0

    def _enter_all(self, numbers: range) -> tuple[int, bool]:
        known = self.known
        if self.max_depth is not None and known.depths[numbers[0]] >= self.max_depth:
            return 0, not list(self.model.actions(known.states[numbers[0]]))
        if self.liveness:
            return self._link_all(numbers)
        if self.sleep_sets is not None:
            return self.sleep_sets.enter_all(numbers, self.max_states)
        return known.enter_all(numbers, self._actions, self.model.step, self.max_states)

    def _link_all(self, numbers: range) -> tuple[int, bool]:
        """Expand states and store every edge."""
        known, taken, is_whole = self.known, 0, True
        for number in numbers:
            state, edges = known.states[number], list[tuple[Any, int]]()
            for action in list(self.model.actions(state)):
                there = self.model.step(state, action)
                is_full = self.max_states is not None and len(known) >= self.max_states
                is_lost = is_full and there not in known
                edges.append((action, -1 if is_lost else known.enter(there, number, action)))
                is_whole = is_whole and not is_lost
            known.link(number, edges)
            taken += len(edges)
        return taken, is_whole

    def _actions(self, state: Any) -> Sequence[Any]:
        actions = list(self.model.actions(state))
        if self.ample is None or len(actions) < 2:
            return actions
        chosen = self.ample(state, actions)
        if chosen is None or (not self.is_acyclic and self._leads_back(state, chosen)):
            return actions  # on a cycle a postponed action might never be taken
        return chosen

    def _leads_back(self, state: Any, actions: Sequence[Any]) -> bool:
        return any(self.model.step(state, action) in self.known for action in actions)

    def _look(self, first: int) -> None:
        """Check the states found since `first` against the properties that are undecided."""
        for number in range(first, len(self.known)) if self.safety else ():
            for claim in self.safety:
                if claim.name in self.found or not self._is_shown(claim, self.known.states[number]):
                    continue
                self.found[claim.name] = Discovery(claim, self._shrunk(claim, number), self.seed)

    def _is_shown(self, claim: Property, state: Any) -> bool:
        """Does this state decide the property?"""
        subject = self.model.observation(state) if claim.is_of_observation else state  # type: ignore[attr-defined]
        return bool(claim.predicate(subject)) == (claim.kind == "sometimes")

    def _shrunk(self, claim: Property, number: int) -> Path[Any, Any]:
        path = self.known.path_to(number)
        if self.order == "breadth" and not self.is_reduced:
            return path
        return shrink(self.model, path, lambda found: self._is_shown(claim, found.last))

    def _is_settled(self) -> bool:
        return self.can_settle and len(self.found) == len(self.safety)

    def _walk(self, walks: int) -> bool:
        drawn = random.Random(self.seed)
        starts = list(self.model.initial_states())
        for _ in range(walks):
            self._walk_once(drawn.choice(starts), drawn)
            if self._is_settled():
                return True
            if self.progress:
                self.progress(SearchProgress(len(self.known), 0, self.depth))
            if self.max_states is not None and len(self.known) >= self.max_states:
                break
        return self._is_settled()

    def _walk_once(self, state: Any, drawn: random.Random) -> None:
        states, actions = [state], list[Any]()
        number = self.known.enter(state)
        longest = _LONGEST_WALK if self.max_depth is None else self.max_depth
        while True:
            for claim in self.safety:
                if claim.name not in self.found and self._is_shown(claim, states[-1]):
                    path = Path(states[0], tuple(actions), tuple(states))
                    shorter = shrink(self.model, path, lambda p, c=claim: self._is_shown(c, p.last))  # type: ignore[misc]
                    self.found[claim.name] = Discovery(claim, shorter, self.seed)
            possible = list(self.model.actions(states[-1])) if len(actions) < longest else []
            if not possible:
                break
            action = drawn.choice(possible)
            self.transitions += 1
            there = self.model.step(states[-1], action)
            number = self.known.enter(there, number, action)
            states.append(there)
            actions.append(action)
        self.depth = max(self.depth, len(actions))

    def _check_liveness(self) -> None:
        for claim in self.liveness:
            path = unfulfilled(claim, self.known)
            if path is not None:
                self.found[claim.name] = Discovery(claim, path, self.seed)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Disable the garbage collector: a search keeps all its objects, and scanning them is slow."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
