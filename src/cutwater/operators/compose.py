"""Sequential composition (P4, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from cutwater.operators.operator import Operator, produce

__all__ = ["always", "compose", "identity"]


def identity() -> Operator:
    """Passes every event on; the unit of `compose`."""
    return Operator(None, lambda state, event: (state, (event,)), is_idle=always, is_blank=always)


def always(_state: Any) -> bool:
    """True: of an operator that keeps nothing."""
    return True


def compose(*operators: Operator) -> Operator:
    """Feeds the outputs of each operator to the next (P4: ``comp_op``).

    The state is the pair of states.

    Laws
    ----
    (6)  ``produce(compose(a, b), xs) == produce(b, produce(a, xs))`` if `a` never stops
    producing, or if `b` has nothing to say at the end. (For a finite `xs` both always hold.)

    (7)  if ``compose(a, b)`` is silent on `xs`, `b` is silent on every prefix of
    ``produce(a, xs)``.

    Examples
    --------
    >>> from cutwater.events import Data
    >>> from cutwater.operators import map_values
    >>> double = map_values(lambda time, value: 2 * value)
    >>> list(produce(compose(double, double), [Data(1, 3)]))
    [Data(time=1, value=12)]
    """
    if not operators:
        return identity()
    return reduce(_compose_two, operators)


def _compose_two(a: Operator, b: Operator) -> Operator:
    def feed(state_b: Any, events: Iterable[Any]) -> tuple[Any, list[Any]]:
        outputs: list[Any] = []
        for event in events:
            state_b, more = b.step(state_b, event)
            outputs.extend(more)
        return state_b, outputs

    def step(state: Any, event: Any) -> tuple[Any, Sequence[Any]]:
        state_a, between = a.step(state[0], event)
        state_b, outputs = feed(state[1], between)
        return (state_a, state_b), outputs

    def finish(state: Any) -> Iterable[Any]:
        return produce(b.at(state[1]), a.finish(state[0]))

    def border(state: Any) -> tuple[Any, Sequence[Any]]:
        state_a, between = a.border(state[0]) if a.border else (state[0], ())
        state_b, outputs = feed(state[1], between)
        if b.border:
            state_b, more = b.border(state_b)
            outputs.extend(more)
        return (state_a, state_b), outputs

    return Operator(
        (a.initial, b.initial),
        step,
        finish,
        start=(lambda key: (a.start_for(key), b.start_for(key))) if a.start or b.start else None,
        border=border if a.border or b.border else None,
        is_idle=lambda state: a.is_idle(state[0]) and b.is_idle(state[1]),
        is_blank=lambda state: a.is_blank(state[0]) and b.is_blank(state[1]),
    )
