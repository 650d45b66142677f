"""Is what is observed never taken back? (P1, Definition 5.3.)

An observability function is monotone in *some* partial order. There is one exactly if the relation
"was observed before" over all steps that can be reached has no circle, whichever runs its steps are
of: where one run shows a, then b, and another b, then a, no order is right for both.
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
from cutwater.checking.explorer.search import Checked, check
from cutwater.errors import InputError, Problem

__all__ = ["Monotonicity", "Observe", "Order", "Steps", "monotonicity", "refuse_no_order"]

Observe = Callable[[Any], Hashable]
Order = Callable[[Any, Any], bool]

_MOST = 100
"""Of how many observations an order is looked at, with all their pairs and triples."""


@dataclass(frozen=True)
class Monotonicity:
    """Whether what is observed only grows, and how far that was looked at."""

    checked: Checked
    circle: tuple[Path[Any, Any], ...] = ()
    """Runs whose last steps go round: each starts with the observation the one before it ends with,
    and the last takes it back. With an order there is one run, whose last step does not go up."""

    @property
    def holds(self) -> bool:
        """Was nothing found that is taken back?"""
        return not self.circle

    @property
    def counterexample(self) -> Path[Any, Any] | None:
        """The run whose last step takes something back."""
        return self.circle[-1] if self.circle else None


class Steps:
    """What was observed directly before what."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[Hashable, Hashable], None] = {}

    def add(self, before: Hashable, after: Hashable) -> None:
        """Of one step, on which the observation changes."""
        self._pairs[before, after] = None

    def observed(self) -> Iterable[Hashable]:
        """Everything that was observed before or after a change."""
        return chain.from_iterable(self._pairs)

    def pairs(self) -> list[tuple[Hashable, Hashable]]:
        """All that was added, in that order."""
        return list(self._pairs)

    def is_monotone(self, order: Order | None) -> bool:
        """Does every step go up, in this order or in some?"""
        if order is None:
            return not self.circle()
        return all(order(before, after) for before, after in self.pairs())

    def circle(self) -> list[tuple[Hashable, Hashable]]:
        """Steps that go round, the one that closes the circle last; none if there is no circle."""
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
    """A model that writes down what is observed before what."""

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
        """The shortest run to the first step that goes from the one observation to the other."""
        state, action = self.witness[pair]
        claim = sometimes("it is reached", lambda there: there == state)
        path = check(self.model, [claim]).discoveries[claim.name].path
        last = self.model.step(state, action)
        return Path(path.initial, (*path.actions, action), (*path.states, last))


def monotonicity(
    model: Model[Any, Any],
    observe: Observe,
    *,
    order: Order | None = None,
    max_states: int | None = None,
) -> Monotonicity:
    """Definition 5.3: does what is observed only ever grow?

    With an `order` every step goes up in it, and `InputError` is raised if it is none; without,
    there is some order in which every step goes up.
    """
    watching = _Watching(model, observe)
    found = check(watching, max_states=max_states)
    steps = watching.steps
    if order is None:
        return Monotonicity(found, tuple(map(watching.run_to, steps.circle())))
    refuse_no_order(order, steps.observed())
    down = [pair for pair in steps.pairs() if not order(*pair)]
    return Monotonicity(found, tuple(map(watching.run_to, down[:1])))


def refuse_no_order(order: Order, observed: Iterable[Hashable]) -> None:
    """`InputError` unless it is a partial order on what was observed, or on the first of it."""
    values = list(islice(dict.fromkeys(observed), _MOST))
    above = {a: {b for b in values if order(a, b)} for a in values}
    problem = next(iter(_problems(values, above)), None)
    if problem is not None:
        raise InputError(
            Problem(
                "no-order",
                f"order= is no partial order of what is observed: {problem}",
                "give an order such as frozenset.issubset or operator.le, or none",
            )
        )


def _problems(values: Sequence[Hashable], above: dict[Hashable, set[Hashable]]) -> Iterable[str]:
    for a in values:
        if a not in above[a]:
            yield f"{a!r} is not up to itself (reflexivity)"
        for b in above[a]:
            if b != a and a in above[b]:
                yield f"{a!r} and {b!r} are each up to the other (antisymmetry)"
            if not above[b] <= above[a]:
                c = next(iter(above[b] - above[a]))
                yield f"{a!r} is up to {b!r} and that up to {c!r}, but not {a!r} (transitivity)"
