"""The states that a search has found, by number, and how it came to each.

A number for a state and one for an action keep what is known small: a search holds each state once,
whatever leads to it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from cutwater.checking.explorer.paths import Path

__all__ = ["Known"]

_NOWHERE = -1


class Known:
    """States in the order in which they were found, and the steps between them.

    With `symmetric` states that it maps to the same are one: the first that was found.
    """

    def __init__(self, symmetric: Callable[[Any], Hashable] | None = None) -> None:
        self._symmetric = symmetric
        self._numbers: dict[Hashable, int] = {}
        self._states: list[Any] = []
        self._before = array("q")
        self._by = array("q")
        self._actions: list[Any] = []
        self._numbers_of_actions: dict[Hashable, int] = {}
        self._first_edge = array("q")
        self._edge_counts = array("i")
        self._edge_actions = array("i")
        self._edge_targets = array("q")

    def __len__(self) -> int:
        return len(self._states)

    def __contains__(self, state: Any) -> bool:
        return self._key(state) in self._numbers

    def number(self, state: Any) -> int:
        """The number of a state that is known."""
        return self._numbers[self._key(state)]

    def _key(self, state: Any) -> Hashable:
        return state if self._symmetric is None else self._symmetric(state)

    def add(self, state: Hashable, before: int = _NOWHERE, action: Hashable = None) -> bool:
        """Is a state new? It is then kept, with the step that led to it."""
        number = len(self._states)
        if self._numbers.setdefault(self._key(state), number) != number:
            return False
        self._states.append(state)
        self._before.append(before)
        self._by.append(_NOWHERE if before == _NOWHERE else self._action(action))
        return True

    def state(self, number: int) -> Any:
        """The state of a number."""
        return self._states[number]

    def starts(self) -> Iterator[int]:
        """The numbers of the states that nothing led to."""
        return (number for number, before in enumerate(self._before) if before == _NOWHERE)

    def path_to(self, state: Hashable) -> Path[Any, Any]:
        """The way on which a state was found."""
        way = [self.number(state)]
        while self._before[way[-1]] != _NOWHERE:
            way.append(self._before[way[-1]])
        way.reverse()
        states = tuple(self._states[number] for number in way)
        actions = tuple(self._actions[self._by[number]] for number in way[1:])
        return Path(states[0], actions, states)

    def add_edges(self, number: int, edges: Iterable[tuple[Hashable, int]]) -> None:
        """Keep all actions of a state and the numbers of where they lead; -1 where not looked."""
        missing = len(self._states) - len(self._first_edge)
        self._first_edge.extend([_NOWHERE] * missing)
        self._edge_counts.extend([0] * missing)
        self._first_edge[number] = len(self._edge_targets)
        for action, there in edges:
            self._edge_actions.append(self._action(action))
            self._edge_targets.append(there)
            self._edge_counts[number] += 1

    def is_expanded(self, number: int) -> bool:
        """Was it looked at what can happen in a state?"""
        return number < len(self._first_edge) and self._first_edge[number] != _NOWHERE

    def edges(self, number: int) -> Sequence[tuple[Any, int]]:
        """The actions of a state and the numbers of where they lead; none if not expanded."""
        if not self.is_expanded(number):
            return ()
        first = self._first_edge[number]
        return [
            (self._actions[self._edge_actions[i]], self._edge_targets[i])
            for i in range(first, first + self._edge_counts[number])
        ]

    def _action(self, action: Hashable) -> int:
        number = self._numbers_of_actions.setdefault(action, len(self._actions))
        if number == len(self._actions):
            self._actions.append(action)
        return number
