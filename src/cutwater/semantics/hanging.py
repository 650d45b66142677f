"""A timeout for calls of the user's functions that do not return, in this process.

A timer ticks while a flow is simulated or checked. A function that is in the same call for
`PATIENCE` ticks in a row is interrupted, and ends in a `StepError`. Calls have no overhead: the
stack shows which call it is. Outside the main thread, or if the timer is already in use, nothing
is interrupted.
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

__all__ = ["PATIENCE", "WATCH_TICK_S", "HangingError", "interrupting", "longest_call_s", "patient"]

WATCH_TICK_S = 1.0
PATIENCE = 30
"""How many ticks one call may last."""


def longest_call_s() -> float:
    """How long one call may last."""
    return PATIENCE * WATCH_TICK_S


class HangingError(BaseException):
    """Raised in a call that did not return in time.

    No `Exception`: neither user code nor a check that goes on after an error may swallow it.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


@contextmanager
def patient() -> Iterator[None]:
    """Interrupt calls of steps' functions that last too long; raises `StepError`."""
    if not _can_tick():
        yield
        return
    before = signal.signal(signal.SIGALRM, _Watch().tick)
    signal.setitimer(signal.ITIMER_REAL, WATCH_TICK_S, WATCH_TICK_S)
    try:
        yield
    except HangingError as error:
        raise StepError(error.problem) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def interrupting(seconds: float) -> Iterator[None]:
    """Interrupt a call that lasts longer, in the main thread of a process that sets no alarms."""

    def interrupt(_number: int, frame: FrameType | None) -> None:
        message = f"a call has not returned after {seconds:g} s; it is at {here(frame)}"
        raise HangingError(Problem("hanging-function", message, "let it return"))

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, WATCH_TICK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


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
            raise HangingError(_problem(call, frame))


def _problem(call: FrameType, frame: FrameType | None) -> Problem:
    names = call.f_locals
    arguments = ", ".join(repr(argument)[:200] for argument in names["args"][names["shown"] :])
    return Problem(
        "hanging-function",
        f"{names['step'].title} has not returned after {longest_call_s():g} s, the most that "
        f"is waited for; it was given {arguments or 'nothing'}, and is at {here(frame)}",
        "let it return: look for a loop that does not end, or for what it waits for",
    )
