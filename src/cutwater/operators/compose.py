"""Sequential composition (P4, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cutwater.operators.operator import Operator, produce
from cutwater.operators.parts import chain_snapshot, emitted_by_all
from cutwater.operators.stateless import keeps_nothing, same_values

__all__ = ["compose", "identity"]


def identity() -> Operator:
    """Forwards every event; the unit of `compose`."""
    return Operator(
        None,
        lambda state, event: (state, (event,)),
        is_idle=keeps_nothing,
        is_blank=keeps_nothing,
        emits=same_values,
    )


def compose(*operators: Operator) -> Operator:
    """Feeds the outputs of each operator to the next (P4: ``comp_op``).

    The state is the tuple of their states, one for each.

    Laws
    ----
    (6)  ``produce(compose(a, b), xs) == produce(b, produce(a, xs))`` if `a` never stops
    producing, or if `b` emits nothing at the end. (For a finite `xs` both always hold.)

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
    if len(operators) < 2:
        return operators[0] if operators else identity()

    def step(state: Any, event: Any) -> tuple[Any, Sequence[Any]]:
        states = list(state)
        events: Sequence[Any] = (event,)
        for i, op in enumerate(operators):
            states[i], events = _feed(op, states[i], events)
            if not events:
                break
        return tuple(states), events

    def finish(state: Any) -> Iterable[Any]:
        events = operators[0].finish(state[0])
        for op, inner in zip(operators[1:], state[1:], strict=True):
            events = produce(op.at(inner), events)
        return events

    def barrier(state: Any) -> tuple[Any, Sequence[Any]]:
        states = list(state)
        events: list[Any] = []
        for i, op in enumerate(operators):
            states[i], events = _feed(op, states[i], events)
            if op.barrier:
                states[i], more = op.barrier(states[i])
                events = [*events, *more]
        return tuple(states), events

    return Operator(
        tuple(op.initial for op in operators),
        step,
        finish,
        start=_start_all(operators) if any(op.start for op in operators) else None,
        barrier=barrier if any(op.barrier for op in operators) else None,
        is_idle=lambda state: all(
            op.is_idle(inner) for op, inner in zip(operators, state, strict=True)
        ),
        is_blank=lambda state: all(
            op.is_blank(inner) for op, inner in zip(operators, state, strict=True)
        ),
        due=lambda state: _least_due(operators, state),
        awaits=lambda state: _awaited(operators, state),
        is_awake=any(op.is_awake for op in operators),
        snapshot=chain_snapshot(operators),
        emits=emitted_by_all(operators),
    )


def _feed(op: Operator, state: Any, events: Iterable[Any]) -> tuple[Any, list[Any]]:
    outputs: list[Any] = []
    for event in events:
        state, more = op.step(state, event)
        outputs.extend(more)
    return state, outputs


def _least_due(operators: Sequence[Operator], state: Any) -> Any | None:
    least = None
    for op, inner in zip(operators, state, strict=True):
        if not op.is_idle(inner):
            time = op.due(inner) if op.due else None
            if time is None:
                return None
            least = time if least is None or time <= least else least
    return least


def _awaited(operators: Sequence[Operator], state: Any) -> list[Any]:
    parts = zip(operators, state, strict=True)
    return [time for op, inner in parts if op.awaits for time in op.awaits(inner)]


def _start_all(operators: Sequence[Operator]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda key: tuple(op.start_for(key) for op in operators)
