"""Path summaries: a lower bound on what a path through a dataflow does to a time.

A summary is a function on times. The five basic ones (`IDENTITY`, `add`, `INGRESS`, `FEEDBACK`,
`EGRESS`) and all their compositions share one normal form: add an amount to the time outside all
loops, leave the innermost `drop` loops, add `bump` to the counter of the loop that is then
innermost, and enter loops at the rounds `tail`. So they can be compared without being called.

P3 requires only a conservative approximation of a node's could-result-in; these are Naiad's nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cutwater.times import in_rounds, rounds_of

__all__ = ["EGRESS", "FEEDBACK", "IDENTITY", "INGRESS", "Summary", "add"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Maps the time of a message at one end to the least time it may cause at the other end.

    ``s <= z`` if ``s(t) <= z(t)`` for all times, so the minimal summaries of several paths
    represent them all.

    >>> INGRESS.then(FEEDBACK)("noon")
    Product(first='noon', second=(1,))
    >>> INGRESS.then(FEEDBACK).then(EGRESS) == IDENTITY
    True
    >>> IDENTITY <= FEEDBACK, FEEDBACK <= IDENTITY
    (True, False)
    """

    amount: Any = None
    """The amount added to the time outside loops; None: nothing."""
    drop: int = 0
    """The number of loops it exits, the innermost first."""
    bump: int = 0
    """The number of rounds added in the loop that is innermost after that."""
    tail: tuple[int, ...] = ()
    """The rounds at which it enters loops after that."""

    def __call__(self, time: Any) -> Any:
        """The time at the other end."""
        if self.amount is None and not (self.drop or self.bump or self.tail):
            return time
        rounds = rounds_of(time)
        kept = rounds[: len(rounds) - self.drop]
        outside = in_rounds(time, ())
        if self.amount is not None:
            outside = outside + self.amount
        return in_rounds(outside, _bumped(kept, self.bump) + self.tail)

    def then(self, after: Summary) -> Summary:
        """The summary of this path followed by another."""
        if IDENTITY in (self, after):
            return self if after == IDENTITY else after
        amount = _sum(self.amount, after.amount)
        if after.drop < len(self.tail):
            kept = self.tail[: len(self.tail) - after.drop]
            return Summary(amount, self.drop, self.bump, _bumped(kept, after.bump) + after.tail)
        deeper = after.drop - len(self.tail)
        bump = self.bump + after.bump if deeper == 0 else after.bump
        return Summary(amount, self.drop + deeper, bump, after.tail)

    def __le__(self, other: object) -> bool:
        if not isinstance(other, Summary):
            return NotImplemented
        return (
            self.deepening == other.deepening
            and _is_at_most(self.amount, other.amount)
            and self._rounds_at_most(other)
        )

    def _rounds_at_most(self, other: Summary) -> bool:
        if self.drop == other.drop:
            return (self.bump, self.tail) <= (other.bump, other.tail)
        if self.drop > other.drop:
            # The other keeps counters that this one sets; they are at least 0.
            zeros = (0,) * (self.drop - other.drop - 1)
            return self.bump == 0 and self.tail <= (*zeros, other.bump, *other.tail)
        # This one keeps counters, of any size, that the other sets: only a later round outside
        # them is certain to be later.
        return other.bump > 0

    @property
    def deepening(self) -> int:
        """How many loops deeper the other end is."""
        return len(self.tail) - self.drop

    @property
    def depth_needed(self) -> int:
        """How many loops a time must be in for the summary to apply."""
        return self.drop + (self.bump > 0)

    @property
    def is_strictly_positive(self) -> bool:
        """Does it map every time to a later one?"""
        return self != IDENTITY and self >= IDENTITY


def _bumped(rounds: tuple[int, ...], bump: int) -> tuple[int, ...]:
    return (*rounds[:-1], rounds[-1] + bump) if bump else rounds


def _sum(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return (a + b) or None


def _is_at_most(a: Any, b: Any) -> bool:
    if a is None and b is None:
        return True
    nothing = b - b if a is None else a - a
    return bool((nothing if a is None else a) <= (nothing if b is None else b))


IDENTITY = Summary()
"""A node that sends at the times it receives, or later."""
INGRESS = Summary(tail=(0,))
"""Into a loop, at its first round."""
FEEDBACK = Summary(bump=1)
"""Into the next round of a loop."""
EGRESS = Summary(drop=1)
"""Out of a loop."""


def add(amount: Any) -> Summary:
    """A node that sends later by an amount: a number, or a duration where times are datetimes.

    >>> add(5)(10), add(5).then(add(-5)) == IDENTITY
    (15, True)
    """
    return Summary(amount or None)
