"""Leaving out interleavings that no observer can tell apart (partial-order reduction).

In a state it is enough to look at the actions of an *ample* set if, whatever else happens first,
these actions stay possible, commute with it, and are not seen by an observer. A model may know such
sets by itself (``ample``; the barrier model reads them off the causal order). From ``independent``
alone they are found here by looking: everything that can happen without the set is explored, up to
a small bound, beyond which the state is not reduced.

What is said of a model counts for the class that says it. A subclass that does something else says
it anew, or it is not reduced; so is a model that says ``is_reducible = False``.

Sound for sequences of observations where no run goes on for ever without the set, which holds for
models whose states do not recur; where a state recurs, it is not reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

__all__ = ["LOOKAHEAD", "Ample", "ample_by", "can_reduce", "can_sleep", "is_acyclic"]

LOOKAHEAD = 64
"""How many states are looked at to find that a set is ample."""

Ample = Callable[[Any, Sequence[Any]], Sequence[Any] | None]


def can_reduce(model: Any) -> bool:
    """Does a model say enough about itself, and does it say so of what it is?"""
    return (
        hasattr(model, "observation")
        and getattr(model, "is_reducible", True)
        and (_is_said_of(model, "ample", ()) or _is_said_of(model, "independent", _MOVES))
    )


def can_sleep(model: Any) -> bool:
    """Does a model say which of its actions are independent, and does it say so of what it is?"""
    return getattr(model, "is_reducible", True) and _is_said_of(model, "independent", _MOVES)


_MOVES = ("initial_states", "actions", "step")
"""What independence and acyclicity are about."""


def is_acyclic(model: Any) -> bool:
    """Does a model say that no state recurs?"""
    return bool(getattr(model, "is_acyclic", False)) and _is_said_of(model, "is_acyclic", _MOVES)


def _is_said_of(model: Any, claim: str, about: Sequence[str]) -> bool:
    """Does a model have a claim, and no subclass another way than the class that makes it?

    `about` names the methods that the claim is about; with none it is about all of them.
    """
    if not hasattr(model, claim):
        return False
    if claim in getattr(model, "__dict__", {}):
        return True
    classes = type(model).__mro__
    author = next(i for i, known in enumerate(classes) if claim in vars(known))
    said_of = set(about) or {name for known in classes[author:-1] for name in vars(known)}
    later = [getattr(model, "__dict__", {}), *map(vars, classes[:author])]
    return not any(
        name in said_of and callable(value) and not name.startswith("__")
        for names in later
        for name, value in names.items()
    )


def ample_by(model: Any) -> Ample:
    """The ample sets a model knows, or those that its independence gives."""
    if _is_said_of(model, "ample", ()):
        known: Ample = model.ample
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
