"""A timeout for calls of the user's functions that do not return, in this process.

A timer ticks while a flow is simulated or checked. A function that is in the same call for
`PATIENCE` ticks in a row is interrupted, and ends in a `StepError`. Calls have no overhead: the
stack shows which call it is, of a step or of any other code of the user's. Outside the main thread,
or if the timer is already in use, nothing is interrupted.

A call that never returns to the interpreter, such as ``sum(itertools.repeat(1))``, notices no tick,
and another may catch what interrupts it. Only ending the process stops these: the command line has
a `watchdog` for that, a caller's own process has none.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from cutwater.errors import Problem, StepError
from cutwater.flow.lowering import call_under
from cutwater.flow.user_modules import is_installed
from cutwater.flow.where import here, is_of_this_package
from cutwater.semantics.watchdog import CallWatchdog, watchdog

__all__ = [
    "PATIENCE",
    "TRIES",
    "WATCH_TICK_S",
    "HangingError",
    "hanging_problem",
    "interrupting",
    "longest_call_s",
    "patient",
]

WATCH_TICK_S = 1.0
PATIENCE = 30
"""How many ticks one call may last."""
TRIES = 3
"""How often a call that catches the interrupt gets it before a watchdog ends the process."""
_GRACE_TICKS = 3


def longest_call_s() -> float:
    """How long one call may last."""
    return PATIENCE * WATCH_TICK_S


class HangingError(BaseException):
    """Raised in a call that did not return in time.

    Not an `Exception`: neither user code nor a check that continues after an error may swallow it.
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
    watch = _Watch(watchdog())
    before = signal.signal(signal.SIGALRM, watch.tick)
    watch.begin()
    signal.setitimer(signal.ITIMER_REAL, WATCH_TICK_S, WATCH_TICK_S)
    try:
        yield
    except HangingError as error:
        raise StepError(error.problem) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        watch.end()


@contextmanager
def interrupting(seconds: float) -> Iterator[None]:
    """Interrupt a call that lasts longer, in the main thread of a process that sets no alarms.

    A call that cannot be interrupted, and computes for twice as long, ends the process.
    """

    def interrupt(_number: int, frame: FrameType | None) -> None:
        message = f"a call has not returned after {seconds:g} s; it is at {here(frame)}"
        raise HangingError(Problem("hanging-function", message, "let it return"))

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, WATCH_TICK_S)
    signal.setitimer(signal.ITIMER_PROF, 2 * seconds)  # has no handler: the kernel ends the process
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)


def _can_tick() -> bool:
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getitimer(signal.ITIMER_REAL)[0] == 0


class _Watch:
    def __init__(self, given: CallWatchdog | None) -> None:
        self._watchdog = given
        self._call: FrameType | None = None
        self._ticks = 0

    def begin(self) -> None:
        """Let the watchdog end the process unless another tick comes."""
        if self._watchdog:
            self._watchdog.expect_within(longest_call_s() + _GRACE_TICKS * WATCH_TICK_S)

    def end(self) -> None:
        if self._watchdog:
            self._watchdog.rest()

    def tick(self, _number: int, frame: FrameType | None) -> None:
        call = call_under(frame) or _call_outside_steps(frame)
        self._ticks = self._ticks + 1 if call is self._call else 0
        self._call = call
        self.begin()
        if call is None or self._ticks < PATIENCE:
            return
        if self._watchdog and self._ticks >= PATIENCE + TRIES:
            self._watchdog.end_with(_problem(call, frame))
        raise HangingError(_problem(call, frame))


def _call_outside_steps(frame: FrameType | None) -> FrameType | None:
    """The frame of the user's code that this package called last; None if there is none."""
    found = None
    while frame is not None and not is_of_this_package(frame):
        name = frame.f_globals.get("__name__", "")
        if name not in sys.modules or not is_installed(name):
            found = frame
        frame = frame.f_back
    return found if frame is not None else None


def _problem(call: FrameType, frame: FrameType | None) -> Problem:
    names = call.f_locals
    if "shown" not in names or "step" not in names:
        return hanging_problem(f"{call.f_code.co_name} ({here(call)})", f"it is at {here(frame)}")
    arguments = ", ".join(repr(argument)[:200] for argument in names["args"][names["shown"] :])
    given = f"it was given {arguments or 'nothing'}, and is at {here(frame)}"
    return hanging_problem(names["step"].title, given)


def hanging_problem(what: str, more: str) -> Problem:
    """The problem of a function that does not return, with what is known of it."""
    return Problem(
        "hanging-function",
        f"{what} has not returned after {longest_call_s():g} s, the longest a call may take; "
        f"{more}",
        "let it return: look for a loop that does not end, or for what it waits for",
    )
