"""Leaving out interleavings that no observer can tell apart (partial-order reduction).

In a state it is enough to look at the actions of an *ample* set if, whatever else happens first,
these actions stay possible, commute with it, and are not seen by an observer. A model may know such
sets by itself (``ample``; the barrier model reads them off the causal order). From ``independent``
alone they are found here by looking: everything that can happen without the set is explored, up to
a small bound, beyond which the state is not reduced.

Sound for sequences of observations where no run goes on for ever without the set, which holds for
models whose states do not recur; where a state recurs, it is not reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

__all__ = ["LOOKAHEAD", "Ample", "ample_by", "can_reduce"]

LOOKAHEAD = 64
"""How many states are looked at to find that a set is ample."""

Ample = Callable[[Any, Sequence[Any]], Sequence[Any] | None]


def can_reduce(model: Any) -> bool:
    """Does a model say enough about itself?"""
    return hasattr(model, "observation") and (
        hasattr(model, "ample") or hasattr(model, "independent")
    )


def ample_by(model: Any) -> Ample:
    """The ample sets a model knows, or those that its independence gives."""
    known: Ample | None = getattr(model, "ample", None)
    if known is not None:
        return known

    def ample(state: Any, actions: Sequence[Any]) -> Sequence[Any] | None:
        for candidate in _components(model, actions):
            if len(candidate) < len(actions) and _is_ample(model, state, candidate):
                return candidate
        return None

    return ample


def _components(model: Any, actions: Sequence[Any]) -> list[list[Any]]:
    """The actions in groups, so that actions of two groups are independent; small ones first."""
    groups: list[list[Any]] = []
    for action in actions:
        tied = [g for g in groups if any(not model.independent(action, other) for other in g)]
        groups = [g for g in groups if g not in tied]
        groups.append([a for g in tied for a in g] + [action])
    return sorted(groups, key=len)


def _is_ample(model: Any, state: Any, candidate: Sequence[Any]) -> bool:
    """Look at what can happen without the candidate: does the candidate stay what it is?"""
    chosen = set(candidate)
    seen: set[Hashable] = {state}
    todo = [state]
    while todo:
        here = todo.pop()
        possible = list(model.actions(here))
        if not chosen <= set(possible) or not _is_unseen(model, here, candidate):
            return False
        for action in possible:
            if action in chosen:
                continue
            if not all(model.independent(action, other) for other in candidate):
                return False
            there = model.step(here, action)
            if there == state or len(seen) > LOOKAHEAD:
                return False
            if there not in seen:
                seen.add(there)
                todo.append(there)
    return True


def _is_unseen(model: Any, state: Any, actions: Sequence[Any]) -> bool:
    before = model.observation(state)
    return all(model.observation(model.step(state, action)) == before for action in actions)
