"""Is an observation never retracted? (P1, Definition 5.3.)

An observability function is monotone in *some* partial order. There is one if and only if the
relation "was observed before" over all reachable steps has no cycle, even if its steps are of
different runs: if one run shows a, then b, and another b, then a, no order fits both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import chain, islice, pairwise
from typing import Any

from cutwater.checking.explorer.model import Model, sometimes
from cutwater.checking.explorer.paths import Path
from cutwater.checking.explorer.search import Checked, check_model
from cutwater.errors import InputError, Problem

__all__ = [
    "Monotonicity",
    "ObservationOrder",
    "Observe",
    "Steps",
    "monotonicity",
    "refuse_no_order",
]

Observe = Callable[[Any], Hashable]
ObservationOrder = Callable[[Any, Any], bool]

_MOST = 100
"""The number of observations on which an order is checked, with all pairs and triples."""


@dataclass(frozen=True)
class Monotonicity:
    """Whether what is observed only grows, and how far that was explored."""

    checked: Checked
    circle: tuple[Path[Any, Any], ...] = ()
    """Runs whose last steps form a cycle: each starts with the observation the one before it ends
    with, and the last retracts it. With an order, one run, whose last step does not go up."""

    @property
    def holds(self) -> bool:
        """Was no retraction found?"""
        return not self.circle

    @property
    def counterexample(self) -> Path[Any, Any] | None:
        """The run whose last step retracts an observation; None if it holds."""
        return self.circle[-1] if self.circle else None


class Steps:
    """Pairs of observations, one directly before the other."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[Hashable, Hashable], None] = {}

    def add(self, before: Hashable, after: Hashable) -> None:
        """Add a step on which the observation changes."""
        self._pairs[before, after] = None

    def observed(self) -> Iterable[Hashable]:
        """Everything that was observed before or after a change."""
        return chain.from_iterable(self._pairs)

    def pairs(self) -> list[tuple[Hashable, Hashable]]:
        """All pairs, in the order they were added."""
        return list(self._pairs)

    def is_monotone(self, order: ObservationOrder | None) -> bool:
        """Does every step go up, in this order; None: in some order?"""
        if order is None:
            return not self.circle()
        return all(order(before, after) for before, after in self.pairs())

    def circle(self) -> list[tuple[Hashable, Hashable]]:
        """Steps that form a cycle, the closing one last; empty if there is no cycle."""
        pairs = self.pairs()
        if not _goes_round(pairs):
            return []
        count = bisect_left(range(len(pairs)), True, key=lambda n: _goes_round(pairs[: n + 1]))
        back, start = pairs[count]
        links: dict[Hashable, Hashable] = {start: start}
        waiting = deque(links)
        while back not in links:
            here = waiting.popleft()
            for before, after in pairs[:count]:
                if before == here and after not in links:
                    links[after] = here
                    waiting.append(after)
        way = [back]
        while way[-1] != start:
            way.append(links[way[-1]])
        way.reverse()
        return [*pairwise(way), (back, start)]


def _goes_round(pairs: Iterable[tuple[Hashable, Hashable]]) -> bool:
    into: dict[Hashable, list[Hashable]] = {}
    for before, after in pairs:
        into.setdefault(after, []).append(before)
    try:
        TopologicalSorter(into).prepare()
    except CycleError:
        return True
    return False


class _Watching:
    """A model that records which observation comes before which."""

    def __init__(self, model: Any, observe: Observe) -> None:
        self.model, self.observe = model, observe
        self.initial_states, self.actions = model.initial_states, model.actions
        self.steps = Steps()
        self.witness: dict[tuple[Hashable, Hashable], tuple[Any, Any]] = {}

    def step(self, state: Any, action: Any) -> Any:
        there = self.model.step(state, action)
        before, after = self.observe(state), self.observe(there)
        if before != after and (before, after) not in self.witness:
            self.steps.add(before, after)
            self.witness[before, after] = (state, action)
        return there

    def run_to(self, pair: tuple[Hashable, Hashable]) -> Path[Any, Any]:
        """The shortest run to the first step from one observation to the other."""
        state, action = self.witness[pair]
        claim = sometimes("it is reached", lambda there: there == state)
        path = check_model(self.model, [claim]).discoveries[claim.name].path
        last = self.model.step(state, action)
        return Path(path.initial, (*path.actions, action), (*path.states, last))


def monotonicity(
    model: Model[Any, Any],
    observe: Observe,
    *,
    order: ObservationOrder | None = None,
    max_states: int | None = None,
) -> Monotonicity:
    """Definition 5.3: does what is observed only ever grow?

    With an `order`, every step has to go up in it; `InputError` if it is not a partial order.
    Without one, there has to be some order in which every step goes up.
    """
    watching = _Watching(model, observe)
    found = check_model(watching, max_states=max_states)
    steps = watching.steps
    if order is None:
        return Monotonicity(found, tuple(map(watching.run_to, steps.circle())))
    refuse_no_order(order, steps.observed())
    down = [pair for pair in steps.pairs() if not order(*pair)]
    return Monotonicity(found, tuple(map(watching.run_to, down[:1])))


def refuse_no_order(order: ObservationOrder, observed: Iterable[Hashable]) -> None:
    """`InputError` unless it is a partial order on the observations, at most `_MOST` of them."""
    values = list(islice(dict.fromkeys(observed), _MOST))
    above = {a: {b for b in values if order(a, b)} for a in values}
    problem = next(iter(_problems(values, above)), None)
    if problem is not None:
        raise InputError(
            Problem(
                "no-order",
                f"order= is not a partial order of what is observed: {problem}",
                "give an order such as frozenset.issubset or operator.le, or none",
            )
        )


def _problems(values: Sequence[Hashable], above: dict[Hashable, set[Hashable]]) -> Iterable[str]:
    for a in values:
        if a not in above[a]:
            yield f"{a!r} does not precede itself (reflexivity)"
        for b in above[a]:
            if b != a and a in above[b]:
                yield f"{a!r} and {b!r} precede each other (antisymmetry)"
            if not above[b] <= above[a]:
                c = next(iter(above[b] - above[a]))
                yield f"{a!r} precedes {b!r} and {b!r} {c!r}, but not {a!r} {c!r} (transitivity)"
