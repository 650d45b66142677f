"""The relational join of two streams (P4, section 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cutwater.operators.accumulate import incr_batch
from cutwater.operators.compose import compose
from cutwater.operators.flatten import flatten
from cutwater.operators.map_values import map_values
from cutwater.operators.operator import Operator
from cutwater.operators.union import union
from cutwater.times import Left, Right

__all__ = ["join", "join_list"]


def join_list(
    f: Callable[[Any, Any], Any | None],
) -> Callable[[Any, Iterable[tuple[Any, Any]]], list[Any]]:
    """All results of `f` on pairs of a left and a right value of the same time; None is dropped."""

    def joined(side: Any, pairs: Iterable[tuple[Any, Any]]) -> list[Any]:
        at: dict[type, list[Any]] = {Left: [], Right: []}
        for time, value in pairs:
            if time.time == side.time:
                at[type(time)].append(value)
        results = (f(left, right) for left in at[Left] for right in at[Right])
        return [result for result in results if result is not None]

    return joined


def join(
    f: Callable[[Any, Any], Any | None],
    pending: Iterable[tuple[Any, Any]] = (),
    batches: Iterable[tuple[Any, Any]] = (),
    waiting: Iterable[Any] = (),
    seen: Iterable[Any] = (),
) -> Operator:
    """Joins the `Left` and the `Right` values of each time by `f` (P4: ``join_op``).

    ``f(left, right)`` is the joined value, or None where the two do not match. The pairs of a time
    are emitted when the second of the two sides completes it.

    Keeps every value for ever.

    Laws
    ----
    (28) every output joins a left and a right input of its time; (29) every pair that can be
    joined is; (30) monotone streams stay monotone; (31) productive streams stay productive if
    every watermark is producible.

    Examples
    --------
    >>> from cutwater.events import Data, Watermark
    >>> from cutwater.operators import produce
    >>> events = [Data(Left(1), "a"), Data(Right(1), "b"), Watermark(Left(1)), Watermark(Right(1))]
    >>> list(produce(join(lambda a, b: a + b), events))
    [Data(time=1, value='ab'), Watermark(time=1), Watermark(time=1)]
    """
    return compose(
        incr_batch(pending, batches), map_values(join_list(f)), flatten(), union(waiting, seen)
    )
