"""Runs commands that call the user's functions in a process that can be killed.

A call that never returns control to the interpreter cannot be interrupted from within. So a command
runs in a forked process, with a watchdog and a bound on its memory; this one waits for it, and
names the function that hung.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from cutwater.errors import Problem, StepError
from cutwater.flow.where import Where
from cutwater.semantics.hanging import hanging_problem
from cutwater.semantics.watchdog import CallWatchdog, keep_watchdog

__all__ = ["OVERSEEN", "most_memory", "overseen"]

OVERSEEN = ("simulate", "check")
"""The commands that call the user's functions in this process."""
_PASSED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_CGROUP = Path("/sys/fs/cgroup/memory.max")
_FRAME = re.compile(r'File "(.*)", line (\d+) in (.*)')
_PACKAGE = str(Path(__file__).parents[1])


def overseen(run: Callable[[], None]) -> None:
    """Run a command in a process of its own, and end with its exit code.

    Raises `StepError` if a function did not return and could not be interrupted. Where the system
    cannot say who sent a signal, as on macOS, the command runs in this process.
    """
    if not hasattr(signal, "sigwaitinfo"):
        run()
        return
    with tempfile.TemporaryFile() as report:
        parent = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON | {signal.SIGCHLD})
        child = os.fork()
        if child == 0:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON | {signal.SIGCHLD})
            keep_watchdog(CallWatchdog(report, parent))
            _bound_memory()
            run()
            return
        code = _ended(child)
        report.seek(0)
        dump = report.read()
    if dump:
        raise StepError(_problem(dump))
    if code < 0:
        with suppress(OSError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def _ended(child: int) -> int:
    """The exit code of a process, which gets the signals that others send to this one."""
    while True:
        known, status = os.waitpid(child, os.WNOHANG)
        if known:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON | {signal.SIGCHLD})
            return os.waitstatus_to_exitcode(status)
        sent = signal.sigwaitinfo(_PASSED_ON | {signal.SIGCHLD})
        # A terminal sends Ctrl-C to both: passed on, it would count twice.
        if sent.si_signo in _PASSED_ON and sent.si_code <= 0:
            os.kill(child, sent.si_signo)


def most_memory() -> int:
    """The most bytes a command may hold: half of what the machine, or the container, has."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no container, or "max"
        size = min(size, int(_CGROUP.read_text()))
    return size // 2


def _bound_memory() -> None:
    """Stop endless allocation by a `MemoryError`, before the machine runs out of memory."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    held = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (min([most_memory(), *held]), hard))


def _problem(dump: bytes) -> Problem:
    """The problem that the watchdog wrote, or that its dump of all threads' stacks shows."""
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(dump, type=Problem)
    stacks = dump.decode(errors="replace").split("(most recent call first):")
    frames = next(
        (found for stack in stacks if _is_ours(found := _FRAME.findall(stack))),
        [],
    )
    inner = [frame for n, frame in enumerate(frames) if not _is_ours(frames[: n + 1])]
    what = f"{inner[-1][2]} ({_where(inner[-1])})" if inner else "a function"
    at = f"; it is at {_where(inner[0])}" if inner else ""
    more = f"it never returns control to the interpreter, so it cannot be interrupted{at}"
    return hanging_problem(what, more)


def _is_ours(frames: list[Any]) -> bool:
    return any(file.startswith(_PACKAGE) for file, *_ in frames)


def _where(frame: tuple[str, str, str]) -> Where:
    return Where(frame[0], int(frame[1]))
