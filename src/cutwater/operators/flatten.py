"""Splitting lists into single values (P4, section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutwater.annotations import element_of
from cutwater.events import Data, Event, Watermark
from cutwater.operators.operator import Operator
from cutwater.operators.stateless import keeps_nothing

__all__ = ["flatten"]


def flatten() -> Operator:
    """Emits each element of each value, at the value's time (P4: ``flatten_op``).

    Keeps nothing.

    Laws
    ----
    The data of ``produce(flatten(), xs)`` is that of `xs`, split in order; watermarks keep their
    positions, so monotone and productive streams stay so.

    Examples
    --------
    >>> from cutwater.operators import produce
    >>> list(produce(flatten(), [Data(1, "ab"), Data(2, "")]))
    [Data(time=1, value='a'), Data(time=1, value='b')]
    """

    def step(state: None, event: Event) -> tuple[None, Sequence[Event]]:
        if isinstance(event, Watermark):
            return state, (event,)
        return state, [Data(event.time, element) for element in event.value]

    def emits(_time: Any, value: Any) -> Any:
        return element_of(value)

    return Operator(None, step, is_idle=keeps_nothing, is_blank=keeps_nothing, emits=emits)
