"""The causal order of the steps of a trace (P1, Definitions 6.4 and B.3 to B.5).

=====================================  =====================================================
P1                                     here
=====================================  =====================================================
Z_i happens before Z_j, (1) to (3)     `causes`: for each step its direct predecessors
(4), transitivity                      `happens_before`
permutation preserving causality (B.5) `is_causal`; `reordered` draws one
=====================================  =====================================================

Our reading of the paper (2026-11-16): in 6.4(3) the message is consumed by Z_j; in B.3(3) it is in
M'' \\ M; in B.5 the relation on the right is that of Z'.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from cutwater.trace import TraceStep

__all__ = ["causes", "happens_before", "is_causal", "reordered"]


def causes(steps: Sequence[TraceStep]) -> list[set[int]]:
    """For each step the indices of steps that directly happen before it.

    Those that follow by transitivity may be missing.
    """
    found: list[set[int]] = []
    last_of: dict[str, int] = {}
    producer: dict[tuple[str, int], int] = {}
    recovery: int | None = None
    since: list[int] = []
    for index, step in enumerate(steps):
        before = set() if recovery is None else {recovery}
        if step.rule == "recover":  # (1) global recovery
            before.update(since)
            recovery, since = index, []
        else:
            assert step.task is not None
            if step.task in last_of:  # (2) intraprocessor order
                before.add(last_of[step.task])
            last_of[step.task] = index
            for message in step.consumed:  # (3) interprocessor order
                if (message.stream, message.n) in producer:
                    before.add(producer[message.stream, message.n])
            for message in step.produced:
                producer[message.stream, message.n] = index
            since.append(index)
        found.append(before)
    return found


def happens_before(steps: Sequence[TraceStep]) -> list[set[int]]:
    """For each step all steps that happen before it."""
    closed: list[set[int]] = []
    for before in causes(steps):
        closed.append(before.union(*(closed[i] for i in before)))
    return closed


def is_causal(steps: Sequence[TraceStep], order: Sequence[int]) -> bool:
    """Does a permutation, given as indices in their new order, preserve the causal order?"""
    place = {index: i for i, index in enumerate(order)}
    is_permutation = len(place) == len(order) == len(steps)
    return is_permutation and all(
        place[i] < place[index] for index, before in enumerate(causes(steps)) for i in before
    )


def reordered(steps: Sequence[TraceStep], drawn: random.Random) -> list[int]:
    """A random permutation that preserves the causal order."""
    waiting = {index: set(before) for index, before in enumerate(causes(steps))}
    order: list[int] = []
    while waiting:
        ready = [index for index, before in waiting.items() if not before]
        chosen = drawn.choice(ready)
        del waiting[chosen]
        for before in waiting.values():
            before.discard(chosen)
        order.append(chosen)
    return order
