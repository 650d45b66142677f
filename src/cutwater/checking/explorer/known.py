"""The states that a search has found, by number, and the path to each.

States and actions are numbered to save memory: a search stores each state once, however many paths
lead to it.
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

    With `symmetric`, states that it maps to the same key count as one: the first that was found.
    """

    def __init__(self, symmetric: Callable[[Any], Hashable] | None = None) -> None:
        self._symmetric = symmetric
        self._numbers: dict[Hashable, int] = {}
        self.find: Callable[[Hashable], int | None] = self._numbers.get
        """The number of the state with a key; None if it is unknown."""
        self.states: list[Any] = []
        self.depths = array("i")
        """For each state the length of the path on which it was found."""
        self._before = array("q")
        self._by = array("q")
        self._actions: list[Any] = []
        self._numbers_of_actions: dict[Hashable, int] = {}
        self._first_edge = array("q")
        self._edge_counts = array("i")
        self._edge_actions = array("i")
        self._edge_targets = array("q")

    def __len__(self) -> int:
        return len(self.states)

    def __contains__(self, state: Any) -> bool:
        return self._key(state) in self._numbers

    def _key(self, state: Any) -> Hashable:
        return state if self._symmetric is None else self._symmetric(state)

    def enter(self, state: Hashable, before: int = _NOWHERE, action: Hashable = None) -> int:
        """The number of a state; a new one is stored, with the step that led to it."""
        key = self._key(state)
        number = self.find(key)
        return self.keep(key, state, before, action) if number is None else number

    def keep(self, key: Hashable, state: Any, before: int, action: Hashable) -> int:
        """Store a state whose key is unknown; returns its number."""
        number = self._numbers[key] = len(self.states)
        self.states.append(state)
        self._before.append(before)
        if before == _NOWHERE:
            self._by.append(_NOWHERE)
            self.depths.append(0)
        else:
            self._by.append(self._action(action))
            self.depths.append(self.depths[before] + 1)
        return number

    def enter_all(
        self,
        numbers: Iterable[int],
        actions_of: Callable[[Any], Sequence[Any]],
        step: Callable[[Any, Any], Any],
        most: int | None,
    ) -> tuple[int, bool]:
        """Store the new successors of states: the number of steps, and whether all were stored.

        At most `most` states are stored in total; None: no limit.
        """
        find, symmetric, states, taken, is_whole = self.find, self._symmetric, self.states, 0, True
        for before in numbers:
            state = states[before]
            for action in actions_of(state):
                taken += 1
                there = step(state, action)
                key = there if symmetric is None else symmetric(there)
                if find(key) is None:
                    if most is not None and len(states) >= most:
                        is_whole = False
                    else:
                        self.keep(key, there, before, action)
        return taken, is_whole

    def link(self, number: int, edges: Iterable[tuple[Hashable, int]]) -> None:
        """Store all actions of a state and the numbers of their successors; -1: not explored."""
        missing = len(self.states) - len(self._first_edge)
        self._first_edge.extend([_NOWHERE] * missing)
        self._edge_counts.extend([0] * missing)
        self._first_edge[number] = len(self._edge_targets)
        for action, there in edges:
            self._edge_actions.append(self._action(action))
            self._edge_targets.append(there)
            self._edge_counts[number] += 1

    def starts(self) -> Iterator[int]:
        """The numbers of the initial states."""
        return (number for number, before in enumerate(self._before) if before == _NOWHERE)

    def path_to(self, number: int) -> Path[Any, Any]:
        """The path on which a state was found."""
        way = [number]
        while self._before[way[-1]] != _NOWHERE:
            way.append(self._before[way[-1]])
        way.reverse()
        states = tuple(self.states[number] for number in way)
        actions = tuple(self._actions[self._by[number]] for number in way[1:])
        return Path(states[0], actions, states)

    def is_expanded(self, number: int) -> bool:
        """Have the actions of a state been explored?"""
        return number < len(self._first_edge) and self._first_edge[number] != _NOWHERE

    def edges(self, number: int) -> Sequence[tuple[Any, int]]:
        """The actions of a state and the numbers of their successors; empty if not expanded."""
        if not self.is_expanded(number):
            return ()
        first = self._first_edge[number]
        return [
            (self._actions[self._edge_actions[i]], self._edge_targets[i])
            for i in range(first, first + self._edge_counts[number])
        ]

    def _action(self, action: Hashable) -> int:
        number = self._numbers_of_actions.get(action)
        if number is None:
            number = self._numbers_of_actions[action] = len(self._actions)
            self._actions.append(action)
        return number
