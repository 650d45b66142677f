"""Equivalence of two operators on monotone streams (P4, section 5.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cutwater.events import Event, Verdict, Watermark
from cutwater.operators.operator import Operator

__all__ = ["eq_op"]


def eq_op(
    a: Operator, b: Operator, events: Sequence[Event], seen: Iterable[Any] = (), *, depth: int
) -> Verdict:
    """Do two operators agree on every monotone stream of at most `depth` of the given events?

    The paper's ``eq_op W op₁ op₂`` is this for every depth and every event. `seen` is its W. The
    reason of a failed verdict is the stream that distinguishes them.

    Laws
    ----
    (26) operators related by `eq_op` produce the same on monotone streams.

    Examples
    --------
    >>> from cutwater.events import Data
    >>> from cutwater.operators import histogram, histogram_total
    >>> events = [Data(1, "a"), Data(2, "a"), Watermark(1), Watermark(2)]
    >>> bool(eq_op(histogram(), histogram_total(), events, depth=3))
    True
    """
    return _related(a, b, tuple(events), frozenset(seen), (), depth)


def _related(
    a: Operator,
    b: Operator,
    events: tuple[Event, ...],
    seen: frozenset[Any],
    path: tuple[Event, ...],
    depth: int,
) -> Verdict:
    if list(a.finish(a.initial)) != list(b.finish(b.initial)):
        return Verdict(False, len(path), f"after {list(path)} they end differently")
    if depth == 0:
        return Verdict(True)
    for event in events:
        later = seen
        if isinstance(event, Watermark):
            later = seen | {event.time}
        elif any(event.time <= time for time in seen):
            continue
        state_a, out_a = a.step(a.initial, event)
        state_b, out_b = b.step(b.initial, event)
        longer = (*path, event)
        if list(out_a) != list(out_b):
            return Verdict(False, len(path), f"they differ at the end of {list(longer)}")
        verdict = _related(a.at(state_a), b.at(state_b), events, later, longer, depth - 1)
        if not verdict:
            return verdict
    return Verdict(True)
