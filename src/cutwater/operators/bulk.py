"""Working on several events at once (P4, section 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cutwater.operators.operator import Operator

__all__ = ["bulk"]


def bulk(
    f: Callable[[Sequence[Any]], Sequence[Any]], n: int, buffer: Iterable[Any] = ()
) -> Operator:
    """Buffers until there are `n` events, then emits what `f` makes of them, newest first.

    At the end `f` gets what is left, even if that is nothing (P4: ``bulk_op``).

    Laws
    ----
    For a finite `xs` and an empty buffer, the output is that of `f` on every run of `n` events,
    each run newest first, followed by `f` on the remainder.

    Examples
    --------
    >>> from cutwater.operators import produce
    >>> list(produce(bulk(lambda run: ["".join(run)], 2), "abcde"))
    ['ba', 'dc', 'e']
    """
    initial = tuple(buffer)

    def step(state: tuple[Any, ...], event: Any) -> tuple[Any, Sequence[Any]]:
        held = (event, *state)
        return (held, ()) if len(held) < n else ((), f(held))

    return Operator(initial, step, f)
