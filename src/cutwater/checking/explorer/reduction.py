"""Partial-order reduction: skip interleavings that no observer can distinguish.

In a state it is enough to explore the actions of an *ample* set if, whatever else happens first,
these actions stay enabled, commute with it, and are invisible to an observer. A model may know such
sets itself (``ample``; the barrier model reads them off the causal order). From ``independent``
alone they are found here by lookahead: everything that can happen without the set is explored, up
to a small bound, beyond which the state is not reduced.

A declaration holds for the class that makes it (`declarations`). A subclass that overrides a method
has to declare it again, or it is not reduced; nor is a model with ``is_reducible = False``.

Sound for sequences of observations where no run continues for ever without the set, which holds for
models whose states do not recur; where a state recurs, it is not reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from cutwater.checking.explorer.declarations import makes_claim

__all__ = ["LOOKAHEAD", "Ample", "ample_by", "can_reduce", "can_sleep", "is_acyclic"]

LOOKAHEAD = 64
"""The number of states explored to establish that a set is ample."""

Ample = Callable[[Any, Sequence[Any]], Sequence[Any] | None]


def can_reduce(model: Any) -> bool:
    """Does a model declare enough to be reduced, and do the declarations apply to its class?"""
    return (
        hasattr(model, "observation")
        and getattr(model, "is_reducible", True)
        and (makes_claim(model, "ample") or makes_claim(model, "independent"))
    )


def can_sleep(model: Any) -> bool:
    """Does a model declare ``independent``, and does the declaration apply to its class?"""
    return getattr(model, "is_reducible", True) and makes_claim(model, "independent")


def is_acyclic(model: Any) -> bool:
    """Does a model declare that no state recurs?"""
    return bool(getattr(model, "is_acyclic", False)) and makes_claim(model, "is_acyclic")


def ample_by(model: Any) -> Ample:
    """The ample sets that a model declares, or those derived from its independence."""
    if makes_claim(model, "ample"):
        known: Ample = model.ample
        return known

    def ample(state: Any, actions: Sequence[Any]) -> Sequence[Any] | None:
        for candidate in _components(model, actions):
            if len(candidate) < len(actions) and _is_ample(model, state, candidate):
                return candidate
        return None

    return ample


def _components(model: Any, actions: Sequence[Any]) -> list[list[Any]]:
    """The actions in groups, with actions of different groups independent; small groups first."""
    groups: list[list[Any]] = []
    for action in actions:
        tied = [g for g in groups if any(not model.independent(action, other) for other in g)]
        groups = [g for g in groups if g not in tied]
        groups.append([a for g in tied for a in g] + [action])
    return sorted(groups, key=len)


def _is_ample(model: Any, state: Any, candidate: Sequence[Any]) -> bool:
    """Explore what can happen without the candidate: does it stay enabled and independent?"""
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
