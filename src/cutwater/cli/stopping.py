"""SIGTERM and Ctrl-C: the running epoch is finished, within a time limit.

The first signal requests the stop. A second Ctrl-C, or the end of `stop_timeout`, kills the JVM of
the run: whatever waits for it then fails at once, even if the JVM is frozen. This is done by
threads and handlers that never call into the JVM, and a process that is still alive afterwards
ends itself.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cutwater.endings import AGAIN
from cutwater.errors import Problem, ResourceError

__all__ = ["EPOCH_FIRST", "INTERRUPTED", "Stops", "stops_asked_for"]

EPOCH_FIRST = "the epoch that is running is finished"
"""What a run of micro-batches does before it ends."""
INTERRUPTED = 130
"""The exit code of a run that was cut off by a second Ctrl-C."""
_GRACE_S = 10.0
"""How long this process may take to end once its JVM is killed."""


class Stops:
    """Whether a run was asked to end, and whether it was cut off since."""

    def __init__(
        self,
        notify: Callable[[str], None],
        stop_timeout_s: float,
        cut_off: Callable[[], object],
        first: str,
    ) -> None:
        self._notify = notify
        self._first = first
        self._stop_timeout_s = stop_timeout_s
        self._cut_off = cut_off
        self._asked = threading.Event()
        self._over = threading.Event()
        self.is_late = False
        """Was it cut off because it took too long?"""
        self.is_interrupted = False
        """Was it cut off by a second Ctrl-C?"""

    def is_asked(self) -> bool:
        """Was the run asked to end?"""
        return self._asked.is_set()

    def ask(self, name: str) -> None:
        """Let the run end after its epoch; the time limit starts now."""
        self._asked.set()
        threading.Thread(target=self._watch, daemon=True).start()
        self._notify(f"{name}: {self._first} first; Ctrl-C cuts it off")

    def interrupt(self) -> None:
        """Cut the run off, as by a second Ctrl-C."""
        self.is_interrupted = True
        self._cut(INTERRUPTED)
        raise KeyboardInterrupt

    def _cut(self, code: int) -> None:
        """End the run; exit the process with a code if it is still alive after a while."""
        # The timer first, in case cutting off blocks.
        threading.Thread(target=self._end, args=[code], daemon=True).start()
        self._cut_off()

    def end(self) -> None:
        """The run has ended."""
        self._over.set()

    def late(self) -> ResourceError:
        """The problem of a run that was cut off because it took too long."""
        return ResourceError(
            Problem(
                "stop-timeout",
                f"the run was asked to stop, and its epoch was not finished "
                f"{self._stop_timeout_s:g} s later; it was cut off",
                "nothing is lost: the next run replays the epoch; if epochs take that long, "
                "raise stop_timeout",
            )
        )

    def _watch(self) -> None:
        if not self._over.wait(self._stop_timeout_s):
            self.is_late = True
            self._cut(AGAIN)

    def _end(self, code: int) -> None:
        if not self._over.wait(_GRACE_S):
            os._exit(code)


@contextmanager
def stops_asked_for(
    notify: Callable[[str], None],
    stop_timeout_s: float,
    cut_off: Callable[[], object] = lambda: None,
    first: str = EPOCH_FIRST,
) -> Iterator[Stops]:
    """Handles SIGTERM and Ctrl-C while something runs.

    `cut_off` ends it without its cooperation; `first` is what happens before it ends.
    """
    stops = Stops(notify, stop_timeout_s, cut_off, first)
    if threading.current_thread() is not threading.main_thread():
        yield stops
        return

    def on_signal(number: int, _frame: Any) -> None:
        if not stops.is_asked():
            stops.ask("SIGTERM" if number == signal.SIGTERM else "Ctrl-C")
        elif number == signal.SIGINT:
            stops.interrupt()

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stops
    finally:
        stops.end()
        for number, handler in before.items():
            signal.signal(number, handler)
