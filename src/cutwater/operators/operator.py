"""Operators as state machines, and what they make of a stream (P4, section 3.1).

================================  ==========================================================
P4                                here
================================  ==========================================================
``Logic apply exit``              ``Operator(initial, step, finish)``: the state is made
                                  explicit, so that it can be snapshot
an evolved operator ``op'``       ``op.at(state)``
``produce``                       `produce`; lazy. Where the paper's ``produce₁`` is ``None``
                                  (an infinite input that never causes an output) and its
                                  ``produce`` is the empty list, ours waits
``produce₁``                      `produce_1`, to a bounded depth
``fproduce``                      `fproduce`
================================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cutwater.operators.snapshot import Form

__all__ = ["Ended", "Operator", "Produced", "fproduce", "no_outputs", "produce", "produce_1"]


def no_outputs(_state: Any) -> Iterable[Any]:
    """Nothing: of an operator for which the end of the input does not matter."""
    return ()


def _never(_state: Any) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Operator:
    """A state machine over events: pure, so that any of its states can be kept and gone back to.

    The first three fields are the paper's. The others help an engine that keeps one state for
    each key to visit and to store no more of them than it must, and to encode them.

    Examples
    --------
    >>> from cutwater.events import Data
    >>> def step(count, event):
    ...     return count + 1, [Data(event.time, count + 1)]
    >>> list(produce(Operator(0, step), [Data(1, "a"), Data(2, "b")]))
    [Data(time=1, value=1), Data(time=2, value=2)]
    """

    initial: Any
    """The state before the first event."""
    step: Callable[[Any, Any], tuple[Any, Sequence[Any]]]
    """``(state, event) -> (state, outputs)``."""
    finish: Callable[[Any], Iterable[Any]] = no_outputs
    """``state -> outputs`` at the end of the input; may be lazy."""
    start: Callable[[Any], Any] | None = None
    """``key -> state`` for an operator whose outputs name their key; None: always `initial`."""
    border: Callable[[Any], tuple[Any, Sequence[Any]]] | None = None
    """``state -> (state, outputs)`` when an epoch ends; None if epochs do not matter."""
    is_idle: Callable[[Any], bool] = _never
    """Would a watermark change nothing and emit nothing but itself?"""
    due: Callable[[Any], Any | None] | None = None
    """Over totally ordered times: the least watermark that can matter to a state that is not idle;
    None if any can."""
    awaits: Callable[[Any], Iterable[Any]] | None = None
    """The times, in any order, at which a state that is not idle waits to be complete."""
    is_blank: Callable[[Any], bool] = _never
    """Is this as good as the initial state, so that it need not be kept?"""
    is_awake: bool = False
    """Does it wait for something before the first event? Only without keys: a key is not known
    before its first event. The initial state is there from the start, and is never blank."""
    form: Callable[[Any, Any], Form] | None = None
    """``(type of times, type of values) -> Form``: how a state is kept; None: nothing is known."""
    emits: Callable[[Any, Any], Any] | None = None
    """``(type of times, type of values) -> type of what it emits``; None: nothing is known."""

    def at(self, state: Any) -> Operator:
        """The operator evolved to a state."""
        return replace(self, initial=state)

    def start_for(self, key: Any) -> Any:
        """The state before the first event of a key."""
        return self.start(key) if self.start else self.initial


def produce(op: Operator, events: Iterable[Any]) -> Iterator[Any]:
    """What the operator makes of a stream; lazy, for infinite streams too."""
    state = op.initial
    for event in events:
        state, outputs = op.step(state, event)
        yield from outputs
    yield from op.finish(state)


def fproduce(op: Operator, events: Iterable[Any]) -> tuple[Operator, list[Any]]:
    """The operator evolved by a finite list, and the outputs on the way."""
    state = op.initial
    outputs: list[Any] = []
    for event in events:
        state, more = op.step(state, event)
        outputs.extend(more)
    return op.at(state), outputs


@dataclass(frozen=True, slots=True)
class Produced:
    """`produce_1` found an output (P4: ``Some (Inl (op', x, xs, lxs'))``)."""

    op: Operator
    first: Any
    others: tuple[Any, ...]
    rest: Iterator[Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """`produce_1` reached the end of the input first (P4: ``Some (Inr op')``)."""

    op: Operator


def produce_1(op: Operator, events: Iterable[Any], *, depth: int) -> Produced | Ended | None:
    """Step until there is an output; None if `depth` events caused none (P4: ``produce₁``)."""
    rest = iter(events)
    state = op.initial
    for _ in range(depth):
        try:
            event = next(rest)
        except StopIteration:
            return Ended(op.at(state))
        state, outputs = op.step(state, event)
        if outputs:
            return Produced(op.at(state), outputs[0], tuple(outputs[1:]), rest)
    return None
