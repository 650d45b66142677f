"""A user's function with its own state (P1's task, section 3.1)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from cutwater.annotations import is_immutable
from cutwater.errors import InputError, Problem
from cutwater.events import Data, Event, Watermark
from cutwater.operators.bounded import bounded
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import SnapshotCodec, row_of

__all__ = ["TaskFunction", "check_result", "fresh_copies", "task", "task_snapshot"]

TaskFunction = Callable[[Any, Any], tuple[Any, Sequence[Any]]]


def task(
    f: TaskFunction, initial: Any, *, name: str = "task", expire_after: Any | None = None
) -> Operator:
    """Applies ``f(state, value) -> (state, outputs)``; outputs have the time of their cause.

    Returning None as the state deletes it: the next event starts from `initial` again. With
    `expire_after` the state is dropped once a watermark is at or past the time of the newest event
    plus that much.

    Laws
    ----
    With ``expire_after=None`` watermarks pass through and every output has the time of an input,
    so monotone and productive streams stay so.

    Examples
    --------
    >>> from cutwater.operators import produce
    >>> count = task(lambda n, value: (n + 1, [n + 1]), 0)
    >>> list(produce(count, [Data(1, "a"), Watermark(1), Data(2, "b")]))
    [Data(time=1, value=1), Watermark(time=1), Data(time=2, value=2)]
    """
    fresh = fresh_copies(initial)
    call = _checked(f, name)

    def step(state: Any, event: Event) -> tuple[Any, Sequence[Event]]:
        if isinstance(event, Watermark):
            return state, (event,)
        state, outputs = call(fresh() if state is None else state, event.value)
        return state, [Data(event.time, output) for output in outputs]

    def step_expiring(kept: Any, event: Event) -> tuple[Any, Sequence[Event]]:
        if isinstance(event, Watermark):
            is_expired = kept is not None and kept[1] + expire_after <= event.time
            return (None if is_expired else kept), (event,)
        state, outputs = step(None if kept is None else kept[0], event)
        if state is None:
            return None, outputs
        newest = event.time if kept is None or kept[1] <= event.time else kept[1]
        return (state, newest), outputs

    if expire_after is None:
        return Operator(None, step, is_idle=lambda _state: True, is_blank=_is_none)
    return Operator(
        None,
        step_expiring,
        is_idle=_is_none,
        is_blank=_is_none,
        due=lambda kept: kept[1] + expire_after,
    )


def _is_none(state: Any) -> bool:
    return state is None


def fresh_copies(initial: Any) -> Callable[[], Any]:
    """A factory of unshared initial states; copies only if the state is mutable."""
    if is_immutable(initial):
        return lambda: initial
    return lambda: copy.deepcopy(initial)


def _checked(f: TaskFunction, name: str) -> TaskFunction:
    def call(state: Any, value: Any) -> tuple[Any, Sequence[Any]]:
        result = f(state, value)
        if type(result) is tuple and len(result) == 2 and type(result[1]) is list:
            return result
        return check_result(result, name)

    return call


def check_result(result: Any, name: str) -> tuple[Any, Sequence[Any]]:
    """The returned pair of state and outputs; raises `InputError` if it is anything else."""
    is_pair = isinstance(result, tuple) and len(result) == 2
    if is_pair and not isinstance(result[1], (str, bytes)) and hasattr(result[1], "__iter__"):
        return result[0], bounded(result[1], f"'{name}'")
    raise InputError(
        Problem(
            "not-a-state-and-outputs",
            f"'{name}' returned {result!r}; it returns a pair of the new state and a list of "
            "outputs",
            "return state, []  where there is nothing to emit",
        )
    )


def task_snapshot(time: Any, state: Any, *, is_expiring: bool) -> SnapshotCodec:
    """The state and, if it expires, the time of the newest event."""
    return SnapshotCodec(row_of(state, time) if is_expiring else state)
