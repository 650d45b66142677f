"""Can a model show everything that another one shows? Inclusion modulo stuttering.

P3's externally visible properties are sets of behaviours closed under stuttering (§4.1), and none
of them is a liveness property. So it is enough to run one model beside the set of states the other
can be in after showing the same; where that set is empty, the run so far is the counterexample.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import msgspec

from cutwater.checking.explorer.model import always
from cutwater.checking.explorer.paths import Path
from cutwater.checking.explorer.search import Checked, check_model

__all__ = ["shown_only_by"]


class _Beside(msgspec.Struct, frozen=True, cache_hash=True):
    """A state of one model, and the states the other can be in."""

    state: Any
    others: frozenset[Any]


class _Product:
    def __init__(self, model: Any, other: Any) -> None:
        self.model, self.other = model, other
        self._known: dict[Any, frozenset[Any]] = {}

    def initial_states(self) -> Iterable[_Beside]:
        for state in self.model.initial_states():
            seen = self.model.observation(state)
            yield _Beside(state, self._still(self.other.initial_states(), seen))

    def actions(self, beside: _Beside) -> Iterable[Any]:
        return self.model.actions(beside.state) if beside.others else ()

    def step(self, beside: _Beside, action: Any) -> _Beside:
        there = self.model.step(beside.state, action)
        seen = self.model.observation(there)
        if seen == self.model.observation(beside.state):
            return _Beside(there, beside.others)
        further = (next_ for other in beside.others for next_ in self._next(other))
        return _Beside(there, self._still(further, seen))

    def _still(self, states: Iterable[Any], seen: Hashable) -> frozenset[Any]:
        """The states that show this, closed under steps that show nothing else."""
        found = {state for state in states if self.other.observation(state) == seen}
        todo = list(found)
        while todo:
            for there in self._next(todo.pop()):
                if there not in found and self.other.observation(there) == seen:
                    found.add(there)
                    todo.append(there)
        return frozenset(found)

    def _next(self, state: Any) -> frozenset[Any]:
        if state not in self._known:
            self._known[state] = frozenset(
                self.other.step(state, action) for action in self.other.actions(state)
            )
        return self._known[state]


def shown_only_by(model: Any, other: Any) -> tuple[Path[Any, Any] | None, Checked]:
    """A shortest run of `model` that `other` cannot show, or None; and the search for it.

    Both have ``observation(state)``; steps that do not change it are stuttering and always allowed.
    """
    claim = always("the other model shows the same", lambda beside: bool(beside.others))
    found = check_model(_Product(model, other), [claim])
    if claim.name not in found.discoveries:
        return None, found
    path = found.discoveries[claim.name].path
    states = tuple(beside.state for beside in path.states)
    return Path(states[0], path.actions, states), found
