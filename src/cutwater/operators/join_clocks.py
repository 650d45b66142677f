"""The join of two streams with separate clocks: every pair, at the product of its times."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from cutwater.events import Data, Event
from cutwater.operators.log import Log
from cutwater.operators.operator import Operator
from cutwater.times import Left, Product

__all__ = ["join_clocks"]


def join_clocks(f: Callable[[Any, Any], Any | None]) -> Operator:
    """Joins each `Left` value with each `Right` one, at the `Product` of their times.

    The times of data have sides; watermarks are products already: ``Watermark(Product(t, v))`` says
    that the left side completed ``t`` and the right side ``v``. A pair is emitted when the second
    of the two arrives. Keeps every value for ever.

    Laws
    ----
    The interleaving of the sides affects only the order of the pairs, not which pairs there are.
    Monotone sides give a monotone stream: a pair is late only if both of its values are.

    Examples
    --------
    >>> from cutwater.operators import produce
    >>> from cutwater.times import Left, Right
    >>> events = [Data(Left(1), "a"), Data(Right(7), "b"), Data(Left(2), "c")]
    >>> for event in produce(join_clocks(lambda a, b: a + b), events):
    ...     print(event)
    Data(time=Product(first=1, second=7), value='ab')
    Data(time=Product(first=2, second=7), value='cb')
    """

    def pair(one: tuple[Any, Any], other: tuple[Any, Any]) -> Data | None:
        left, right = (one, other) if isinstance(one[0], Left) else (other, one)
        value = f(left[1], right[1])
        return None if value is None else Data(Product(left[0].time, right[0].time), value)

    def step(held: Log[tuple[Any, Any]], event: Event) -> tuple[Any, Sequence[Event]]:
        if not isinstance(event, Data):
            return held, (event,)
        new = (event.time, event.value)
        pairs = (pair(new, old) for old in held if type(old[0]) is not type(event.time))
        return held.append(new), [made for made in pairs if made is not None]

    empty: Log[tuple[Any, Any]] = Log()
    return Operator(empty, step, is_idle=lambda _held: True, is_blank=operator.not_)
