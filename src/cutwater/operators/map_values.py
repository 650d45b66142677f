"""A function applied to every value (P4, section 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cutwater.annotations import signature_of
from cutwater.events import Data, Event, Watermark
from cutwater.operators.operator import Operator
from cutwater.operators.stateless import keeps_nothing

__all__ = ["map_values"]


def map_values(f: Callable[[Any, Any], Any]) -> Operator:
    """Replaces each value by ``f(time, value)``; keeps times and watermarks (P4: ``map_op``).

    Keeps nothing.

    Laws
    ----
    ``produce(map_values(f), xs)`` is `xs` with each value replaced, so monotone and productive
    streams stay so; ``compose(map_values(f), map_values(g))`` maps by ``g(t, f(t, v))``.

    Examples
    --------
    >>> from cutwater.operators import produce
    >>> list(produce(map_values(lambda time, value: (value, time)), [Data(1, "a"), Watermark(1)]))
    [Data(time=1, value=('a', 1)), Watermark(time=1)]
    """

    def step(state: None, event: Event) -> tuple[None, Sequence[Event]]:
        if isinstance(event, Watermark):
            return state, (event,)
        return state, (Data(event.time, f(event.time, event.value)),)

    def emits(_time: Any, _value: Any) -> Any:
        return signature_of(f).result

    return Operator(None, step, is_idle=keeps_nothing, is_blank=keeps_nothing, emits=emits)
