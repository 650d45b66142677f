"""Operators as state machines, and running them on a stream (P4, section 3.1).

================================  ==========================================================
P4                                here
================================  ==========================================================
``Logic apply exit``              ``Operator(initial, step, finish)``: the state is explicit,
                                  so that it can be snapshotted
an evolved operator ``op'``       ``op.at(state)``
``produce``                       `produce`; lazy. Where the paper's ``produce₁`` is ``None``
                                  (an infinite input that never causes an output) and its
                                  ``produce`` is the empty list, ours blocks
``produce₁``                      `produce_1`, to a bounded depth
``fproduce``                      `fproduce`
================================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cutwater.operators.snapshot import SnapshotCodec

__all__ = ["Ended", "Operator", "Produced", "fproduce", "no_outputs", "produce", "produce_1"]


def no_outputs(_state: Any) -> Iterable[Any]:
    """No outputs: for operators that ignore the end of the input."""
    return ()


def _never(_state: Any) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Operator:
    """A state machine over events: pure, so that any of its states can be saved and restored.

    The first three fields are the paper's. The others let an engine that keeps one state per key
    visit and store as few of them as possible, and encode them.

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
    barrier: Callable[[Any], tuple[Any, Sequence[Any]]] | None = None
    """``state -> (state, outputs)`` when an epoch ends; None if epochs do not matter."""
    is_idle: Callable[[Any], bool] = _never
    """Would a watermark change nothing and emit nothing but itself?"""
    due: Callable[[Any], Any | None] | None = None
    """Over totally ordered times: the least watermark that can affect a state that is not idle;
    None if any can."""
    awaits: Callable[[Any], Iterable[Any]] | None = None
    """The times, in any order, whose completion a state that is not idle awaits."""
    is_blank: Callable[[Any], bool] = _never
    """Is the state equivalent to the initial one, so that it need not be stored?"""
    is_awake: bool = False
    """Does it wait for watermarks before its first event? Only without keys: a key is not known
    before its first event. The initial state exists from the start and is never blank."""
    snapshot: Callable[[Any, Any], SnapshotCodec] | None = None
    """``(type of times, type of values) -> codec``: how a state is serialised; None: unknown."""
    emits: Callable[[Any, Any], Any] | None = None
    """``(type of times, type of values) -> type of the emitted values``; None: unknown."""

    def at(self, state: Any) -> Operator:
        """The operator evolved to a state."""
        return replace(self, initial=state)

    def start_for(self, key: Any) -> Any:
        """The state before the first event of a key."""
        return self.start(key) if self.start else self.initial


def produce(op: Operator, events: Iterable[Any]) -> Iterator[Any]:
    """The outputs of the operator on a stream; lazy, so streams may be infinite."""
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
