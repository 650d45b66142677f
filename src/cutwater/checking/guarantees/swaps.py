"""Calls of a task that refute its claims: two events in the other order, or one repeated.

===================  ===========================================================================
P2                   here
===================  ===========================================================================
Definition 9         `Swap`: a reachable state and two events of one key whose order changes
                     the state or the outputs
idempotent (IV)      `Repetition`: an event that changes something when it is repeated
===================  ===========================================================================

The states are those a key reaches in runs of the flow. The outputs of two events are compared as a
bag, for a sink does not show the order in which it got them. A deleted state equals the initial
one: no later event can distinguish them.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from cutwater.annotations import is_immutable
from cutwater.errors import CutwaterError
from cutwater.flow.steps import Apply
from cutwater.jsonable import plain, shown
from cutwater.operators.task import check_result, fresh_copies
from cutwater.semantics.frozen import hashable_form

__all__ = ["Repetition", "Swap", "find_repetition", "find_swap"]

_TRIES = 400
"""The most pairs of events of a task that are swapped."""


@dataclass(frozen=True)
class _Outcome:
    """The outcome of some events."""

    outputs: tuple[Any, ...] = ()
    state: Any = None
    failure: str = ""
    """What was raised; empty: nothing."""

    @property
    def as_bag(self) -> tuple[Any, Any, str]:
        """What outcomes are compared by."""
        return (
            frozenset(Counter(map(hashable_form, self.outputs)).items()),
            hashable_form(self.state),
            self.failure,
        )

    def __str__(self) -> str:
        if self.failure:
            return f"raises {self.failure}"
        emitted = ", ".join(map(_formatted, self.outputs)) or "nothing"
        return f"emits {emitted}; keeps {_formatted(self.state)}"


@dataclass(frozen=True)
class Swap:
    """Two events of one key whose order matters to a task."""

    step: Apply
    before: tuple[Any, ...]
    """The earlier events of the key, from its initial state."""
    first: Any
    second: Any
    outcomes: tuple[_Outcome, _Outcome]
    """The outcome of the first then the second, and of the second then the first."""

    def __str__(self) -> str:
        one, two = _formatted(self.first), _formatted(self.second)
        return "\n".join(
            [
                f"{_subject(self.step)}: the order of two events of one key matters",
                *_prefix(self.before),
                f"  {one}  then  {two}:  {self.outcomes[0]}",
                f"  {two}  then  {one}:  {self.outcomes[1]}",
            ]
        )

    def is_replayed(self) -> bool:
        """Do the two orders give different results when they are tried again?"""
        return _swapped(self.step, self.before, (self.first, self.second)) is not None


@dataclass(frozen=True)
class Repetition:
    """An event that changes something when it is repeated."""

    step: Apply
    before: tuple[Any, ...]
    """The earlier events of the key, from its initial state."""
    event: Any
    outcomes: tuple[_Outcome, _Outcome]
    """The outcome of the event, and that of its repetition."""

    def __str__(self) -> str:
        event = _formatted(self.event)
        return "\n".join(
            [
                f"{_subject(self.step)}: a repeated event changes something",
                *_prefix(self.before),
                f"  {event}:  {self.outcomes[0]}",
                f"  {event}  once more:  {self.outcomes[1]}",
            ]
        )


def find_swap(
    step: Apply, histories: Sequence[Sequence[Any]], seed: int
) -> tuple[Swap | None, int]:
    """Two events whose order matters, after as few others as possible, or None; and the tries."""

    def differs(pair: tuple[Any, Any], before: Sequence[Any]) -> bool:
        return _swapped(step, before, pair) is not None

    witness, tried = _searched(_pairs(histories, seed), differs)
    if witness is None:
        return None, tried
    before, (first, second) = witness
    outcomes = _swapped(step, before, (first, second))
    assert outcomes is not None
    return Swap(step, tuple(before), first, second, outcomes), tried


def find_repetition(
    step: Apply, histories: Sequence[Sequence[Any]], seed: int
) -> tuple[Repetition | None, int]:
    """An event that changes something when it is repeated, or None; and the number tried."""

    def differs(event: Any, before: Sequence[Any]) -> bool:
        return _repeated(step, before, event) is not None

    witness, tried = _searched(_single(histories, seed), differs)
    if witness is None:
        return None, tried
    before, event = witness
    outcomes = _repeated(step, before, event)
    assert outcomes is not None
    return Repetition(step, tuple(before), event, outcomes), tried


_Tried = TypeVar("_Tried")


def _searched(
    candidates: Iterator[tuple[Sequence[Any], _Tried]],
    differs: Callable[[_Tried, Sequence[Any]], bool],
) -> tuple[tuple[Sequence[Any], _Tried] | None, int]:
    """The first candidate that differs, after as few events as possible; and the number tried."""
    tried = 0
    for before, events in candidates:
        tried += 1
        if differs(events, before):
            return (_shortest(before, partial(differs, events)), events), tried
    return None, tried


def _shortest(before: Sequence[Any], differs: Callable[[Sequence[Any]], bool]) -> Sequence[Any]:
    """No events if the initial state already differs; else as few as possible."""
    if not before or differs(()):
        return ()
    size = max(1, len(before) // 2)
    while size:
        start = 0
        while start < len(before):
            fewer = [*before[:start], *before[start + size :]]
            if differs(fewer):
                before = fewer
            else:
                start += size
        size //= 2
    return before


def _pairs(
    histories: Sequence[Sequence[Any]], seed: int
) -> Iterator[tuple[Sequence[Any], tuple[Any, Any]]]:
    """Neighbours in the state in which they arrive, then any two of a key in an earlier state."""
    drawn = random.Random(seed)
    neighbours = [(h, i, i, i + 1) for h, e in enumerate(histories) for i in range(len(e) - 1)]
    chosen = drawn.sample(neighbours, min(len(neighbours), _TRIES // 2))
    long = [h for h, events in enumerate(histories) if len(events) > 1]
    for _ in range(_TRIES // 2 if long else 0):
        h = drawn.choice(long)
        one, two = sorted(drawn.sample(range(len(histories[h])), 2))
        chosen.append((h, drawn.randint(0, one), one, two))  # earlier, so that no event comes twice
    for h, start, one, two in dict.fromkeys(chosen):
        events = histories[h]
        if hashable_form(events[one]) != hashable_form(events[two]):
            yield events[:start], (events[one], events[two])


def _single(histories: Sequence[Sequence[Any]], seed: int) -> Iterator[tuple[Sequence[Any], Any]]:
    """Each event in the state in which it arrives."""
    found = [(events[:i], events[i]) for events in histories for i in range(len(events))]
    yield from random.Random(seed).sample(found, min(len(found), _TRIES))


def _swapped(
    step: Apply, before: Sequence[Any], pair: tuple[Any, Any]
) -> tuple[_Outcome, _Outcome] | None:
    """The outcomes of the two orders; None if they are equal, or if both orders fail.

    A function that gives another result each time is not blamed for depending on order.
    """
    one, two = pair
    state = _state_after(step, before)
    if isinstance(state, _Outcome):
        return None
    first, second = (_outcome(step, state, events) for events in ((one, two), (two, one)))
    if (first.failure and second.failure) or first.as_bag == second.as_bag:
        return None
    again = _outcome(step, state, (one, two)), _outcome(step, state, (two, one))
    is_stable = [o.as_bag for o in again] == [first.as_bag, second.as_bag]
    return (first, second) if is_stable else None


def _repeated(step: Apply, before: Sequence[Any], event: Any) -> tuple[_Outcome, _Outcome] | None:
    """The outcome of an event, and that of its repetition; None if nothing changes."""
    state = _state_after(step, before)
    if isinstance(state, _Outcome):
        return None
    first = _outcome(step, state, (event,))
    if first.failure:
        return None
    second = _outcome(step, first.state, (event,))
    is_same = second.as_bag == first.as_bag
    is_silent = (
        not second.failure
        and not second.outputs
        and hashable_form(second.state) == hashable_form(first.state)
    )
    return None if is_same or is_silent else (first, second)


def _state_after(step: Apply, events: Sequence[Any]) -> Any:
    """The state, or an `_Outcome` that failed."""
    outcome = _outcome(step, None, events)
    return outcome if outcome.failure else outcome.state


def _outcome(step: Apply, state: Any, events: Sequence[Any]) -> _Outcome:
    """The outcome of events from a state; None: from the initial one."""
    fresh, outputs = fresh_copies(step.task.initial), []
    state = fresh() if state is None else _copy(state)
    for event in events:
        try:
            state, emitted = check_result(step.task.f(state, _copy(event)), step.name)
        except Exception as error:
            message = str(error) if isinstance(error, CutwaterError) else repr(error)
            return _Outcome(failure=message)
        outputs += [_copy(output) for output in emitted]
        state = fresh() if state is None else state
    return _Outcome(tuple(outputs), state)


def _copy(value: Any) -> Any:
    return value if is_immutable(value) else copy.deepcopy(value)


def _subject(step: Apply) -> str:
    return f"{step.verb} '{step.name}', its function at {step.task.where}"


def _prefix(before: Sequence[Any]) -> list[str]:
    return [f"  after  {', '.join(map(_formatted, before))}"] if before else []


def _formatted(value: Any) -> str:
    return shown(plain(value))
