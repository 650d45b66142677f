"""Ends this process if a user's function cannot be interrupted; another process reports it.

The interpreter runs handlers of signals, and other threads, only between its own instructions. So
a thread that needs no interpreter (`faulthandler`) waits, dumps the stacks of the process, and ends
it. `keep_watchdog` is for a process whose parent waits for it and reads the dump.
"""

from __future__ import annotations

import faulthandler
import os
from typing import IO, Any, NoReturn

import msgspec

from cutwater.errors import Problem

__all__ = ["CallWatchdog", "keep_watchdog", "watchdog"]


class CallWatchdog:
    """Ends the process, after writing the reason to a file.

    Parameters
    ----------
    file
        An open file that another process reads: what `end_with` writes, or a stack.
    parent
        The process that waits for this one; without it this one ends, too.
    """

    def __init__(self, file: IO[Any], parent: int) -> None:
        self._file, self._parent = file, parent

    def expect_within(self, seconds: float) -> None:
        """End the process unless this, or `rest`, is called again in time."""
        if os.getppid() != self._parent:
            os._exit(1)
        faulthandler.dump_traceback_later(seconds, file=self._file, exit=True)

    def rest(self) -> None:
        """End nothing until `expect_within` is called again."""
        faulthandler.cancel_dump_traceback_later()

    def end_with(self, problem: Problem) -> NoReturn:
        """End the process now, with a problem."""
        self.rest()
        os.write(self._file.fileno(), msgspec.json.encode(problem))
        os._exit(1)


_kept: list[CallWatchdog] = []


def keep_watchdog(given: CallWatchdog) -> None:
    """Give this process a watchdog."""
    _kept[:] = [given]


def watchdog() -> CallWatchdog | None:
    """The watchdog of this process; None: no parent waits for it, so nothing may end it."""
    return _kept[0] if _kept else None
