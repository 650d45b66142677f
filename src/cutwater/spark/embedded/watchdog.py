"""Ends a run that makes no progress: a function that never returns, a process that is paused.

Spark has a timeout for Python workers (`spark.python.worker.idleTimeoutSeconds`), which does not
suffice: it ends a worker by SIGTERM, which a paused one does not handle, and it does not cover
planners and the JVM itself. So a thread that never calls into the JVM measures how long there was
no progress.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cutwater.errors import Problem, ResourceError

__all__ = ["Watchdog", "ended_if_hung"]

_TICKS = 20
"""Ticks in a timeout, unless they would be longer than the longest."""
_LONGEST_TICK_S = 5.0


class Watchdog:
    """Ends a run without progress for too long.

    Time is counted in ticks: while the whole machine sleeps, or all of a run is paused, none pass.
    """

    def __init__(self, hung_after_s: float, cut_off: Callable[[], object]) -> None:
        self._hung_after_s = hung_after_s
        self._tick_s = min(hung_after_s / _TICKS, _LONGEST_TICK_S)
        self._cut_off = cut_off
        self._signs: dict[str, object] = {}
        self._ticks = 0
        self._seen_at = 0
        self.is_hung = False
        """Was the run cut off?"""

    def is_quiet(self) -> bool:
        """Has nothing changed for a tick or more, so that a closer look is needed?"""
        return self._ticks > self._seen_at

    def note(self, name: str, value: object) -> None:
        """Report an observation; if it changed, the run makes progress."""
        if self._signs.get(name) != value:
            self._signs[name] = value
            self.see()

    def see(self) -> None:
        """Report that the run makes progress."""
        self._seen_at = self._ticks

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count while something runs."""
        self.see()
        over = threading.Event()
        threading.Thread(target=self._count, args=[over], daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def refuse_hung(self) -> None:
        """End a run whose session is not ours, without killing that."""
        if self.is_hung:
            raise ResourceError(self.problem())

    def problem(self) -> Problem:
        """The problem of a run that was cut off."""
        doing = self._signs.get("status")
        return Problem(
            "hung",
            f"no task was finished and nothing was planned for {self._hung_after_s:g} s"
            f"{f' (Spark: {doing})' if doing else ''}; a function does not return, or a process "
            "of the run is paused; the run was cut off",
            "nothing is lost: the next run replays the epoch; if a task may take that long, "
            "raise hung_after, or let epochs be smaller: max_rows_per_epoch",
        )

    def _count(self, over: threading.Event) -> None:
        while not over.wait(self._tick_s):
            self._ticks += 1
            if (self._ticks - self._seen_at) * self._tick_s >= self._hung_after_s:
                self.is_hung = True
                self._cut_off()
                return


@contextmanager
def ended_if_hung(hung_after_s: float, cut_off: Callable[[], object]) -> Iterator[Watchdog]:
    """A watchdog; errors that follow from its cut-off are replaced by its own problem."""
    watchdog = Watchdog(hung_after_s, cut_off)
    try:
        yield watchdog
    except Exception as error:
        if watchdog.is_hung:
            raise ResourceError(watchdog.problem()) from error
        raise
