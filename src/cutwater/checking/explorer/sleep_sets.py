"""Sleep sets: of two independent actions one order is enough, and every state is still found.

Where ``a`` and ``b`` are independent, ``a`` then ``b`` leads where ``b`` then ``a`` does. A search
that took ``a`` before ``b`` lets ``a`` sleep behind ``b``: it is not taken again until something
happens that it does not commute with (Godefroid 1996). A state that is reached on several ways lets
sleep what sleeps on all of them.

Why breadth first finds every state, each at its distance: take a shortest path to a state, and of
the actions that independence lets come first the one that the search took first. What sleeps behind
it came before it, so it is none of those that can come first in the rest, which is a shortest path
again. All ways to a state that are shortest are known before it is looked at, so nothing that comes
later has to wake an action.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from cutwater.checking.explorer.known import Known

__all__ = ["MOST_ACTIONS", "SleepSets"]

MOST_ACTIONS = 256
"""So many actions of a model may sleep, a bit for each in each state that waits; others do not."""


class SleepSets:
    """The actions that need not be taken in each of the states that are known."""

    def __init__(self, model: Any, known: Known) -> None:
        self._model, self._known = model, known
        self._marks = _Marks(model.independent)
        self._asleep: list[int] = []

    def enter_all(self, numbers: Iterable[int], most: int | None) -> tuple[int, bool]:
        """Keep what is new of where states lead: the steps taken, and whether all was kept."""
        known, asleep, marks, apart = self._known, self._asleep, self._marks, self._marks.apart
        asleep.extend([0] * (len(known) - len(asleep)))  # nothing sleeps where a run starts
        actions_of, step, find = self._model.actions, self._model.step, known.find
        taken, is_whole = 0, True
        for before in numbers:
            state, done = known.states[before], asleep[before]
            for action in actions_of(state):
                mark = marks[action]
                if done & mark:
                    continue
                taken += 1
                sleeping, done = done & apart[mark], done | mark
                there = step(state, action)
                number = find(there)
                if number is not None:
                    asleep[number] &= sleeping
                elif most is not None and len(asleep) >= most:
                    is_whole = False
                else:
                    known.keep(there, there, before, action)
                    asleep.append(sleeping)
        return taken, is_whole


class _Marks(dict[Hashable, int]):
    """A bit for each action, given when it is first asked for, and those it is independent of."""

    def __init__(self, independent: Callable[[Any, Any], bool]) -> None:
        super().__init__()
        self._independent = independent
        self.apart: dict[int, int] = {0: 0}

    def __missing__(self, action: Hashable) -> int:
        if len(self) >= MOST_ACTIONS:
            return 0
        mark, apart = 1 << len(self), 0
        for other, bit in self.items():
            if self._independent(action, other):
                apart |= bit
                self.apart[bit] |= mark
        self[action] = mark
        self.apart[mark] = apart
        return mark
