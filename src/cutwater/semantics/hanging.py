"""An end to calls of the user's functions that do not return, in this process.

A timer ticks while a flow is simulated or checked. A function that is in the same call at so many
ticks in a row is ended with a sentence. Nothing is added to the calls themselves: the stack says
which call it is. Where there are no signals, or somebody else uses the timer, nothing is ended.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from cutwater.errors import Problem, StepError
from cutwater.flow.lowering import call_under
from cutwater.flow.where import here

__all__ = ["PATIENCE", "TICK_S", "patient"]

TICK_S = 1.0
PATIENCE = 30
"""Ticks that one call may last."""


@contextmanager
def patient() -> Iterator[None]:
    """End calls of steps' functions that last too long, with `StepError`."""
    if not _can_tick():
        yield
        return
    before = signal.signal(signal.SIGALRM, _Watch().tick)
    signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _can_tick() -> bool:
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getitimer(signal.ITIMER_REAL)[0] == 0


class _Watch:
    def __init__(self) -> None:
        self._call: FrameType | None = None
        self._ticks = 0

    def tick(self, _number: int, frame: FrameType | None) -> None:
        call = call_under(frame)
        self._ticks = self._ticks + 1 if call is self._call else 0
        self._call = call
        if call is not None and self._ticks >= PATIENCE:
            raise StepError(_problem(call, frame))


def _problem(call: FrameType, frame: FrameType | None) -> Problem:
    names = call.f_locals
    given = ", ".join(repr(argument)[:200] for argument in names["args"][names["shown"] :])
    return Problem(
        "hanging-function",
        f"{names['step'].title} has not returned after {PATIENCE * TICK_S:g} s, the most that "
        f"is waited for; it was given {given or 'nothing'}, and is at {here(frame)}",
        "let it return: look for a loop that does not end, or for what it waits for",
    )
