"""Sleep sets: one order of two independent actions is enough, and every state is still found.

If ``a`` and ``b`` are independent, ``a`` then ``b`` leads to the same state as ``b`` then ``a``. A
search that took ``a`` before ``b`` puts ``a`` to sleep after ``b``: it is not taken again until
something happens that it does not commute with (Godefroid 1996). A state that several paths reach
has the sleep set of the first of them.

Why that is enough for a breadth-first search, which numbers states as it finds them and expands
them in this order. Claim: an action ``a`` of a state ``v`` leads to a state that is found while
``v`` or a state with a smaller number is expanded. By induction over the number of ``v``: if ``a``
sleeps there, ``v`` was first found from some ``u`` by a ``b`` independent of ``a``, and ``a`` was
taken at ``u`` before, or sleeps at ``u`` too; so ``a`` leads from ``u`` to a ``w`` that was found
before ``v``. From ``w``, whose number is smaller, ``b`` leads where ``a`` leads from ``v``. So
every state is found, and at its distance, since no state expanded before ``v`` is deeper than
``v``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from cutwater.checking.explorer.known import Known

__all__ = ["MOST_ACTIONS", "SleepSets"]

MOST_ACTIONS = 256
"""Actions that may sleep, one bit per action and waiting state; further actions never sleep."""


class SleepSets:
    """For each known state the actions that need not be taken there."""

    def __init__(self, model: Any, known: Known) -> None:
        self._model, self._known = model, known
        self._marks = _Marks(model.independent)
        self._asleep: list[int] = []

    def enter_all(self, numbers: Iterable[int], most: int | None) -> tuple[int, bool]:
        """Store the new successors of states: the number of steps, and whether all were stored."""
        known, asleep, marks, apart = self._known, self._asleep, self._marks, self._marks.apart
        asleep.extend([0] * (len(known) - len(asleep)))  # initial states have empty sleep sets
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
                if find(there) is not None:
                    continue
                if most is not None and len(asleep) >= most:
                    is_whole = False
                else:
                    known.keep(there, there, before, action)
                    asleep.append(sleeping)
        return taken, is_whole


class _Marks(dict[Hashable, int]):
    """A bit per action, assigned on first use, and the bits of the actions it is independent of."""

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
