"""Processes that are watched, paused and killed, with all their descendants."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = [
    "DEADLINE_SECONDS",
    "children",
    "descendants",
    "kill_all",
    "kill_driver",
    "numbered_files",
    "refusal_of",
    "result_of",
    "signal_all",
    "wait_until",
]

DEADLINE_SECONDS = 600
"""How long to wait for something before giving up; machines may be slow."""


def result_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The report of a command, once it has exited."""
    try:
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    finally:
        kill_all(process)
    assert process.returncode == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def refusal_of(process: subprocess.Popen[str]) -> str:
    """The message with which a command is refused."""
    try:
        _, err = process.communicate(timeout=DEADLINE_SECONDS)
    finally:
        kill_all(process)
    assert process.returncode == 2, err
    assert "Traceback" not in err
    return err


def numbered_files(folder: Path) -> list[int]:
    """The files of a folder whose names are numbers."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdigit())


def wait_until(process: subprocess.Popen[str], is_seen: Callable[[], bool]) -> None:
    """Wait for something that is visible from outside, while the process is alive."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_seen():
        assert process.poll() is None, f"the run ended before it was seen: {process.communicate()}"
        assert time.monotonic() < deadline, "it was not seen in time"
        time.sleep(0.002)


def children() -> dict[int, list[int]]:
    """The children of each process."""
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found.setdefault(int(fields[1]), []).append(int(entry.name))
    return found


def descendants(root: int) -> list[int]:
    """A process and all its descendants."""
    known = children()
    found = [root]
    for pid in found:
        found += known.get(pid, [])
    return found


def signal_all(process: subprocess.Popen[str], sign: signal.Signals) -> None:
    """Send a signal to the process and everything it started."""
    for pid in descendants(process.pid):
        try:
            os.kill(pid, sign)
        except ProcessLookupError:
            continue


def kill_all(process: subprocess.Popen[str]) -> str:
    """SIGKILL to the process and everything it started; returns its standard error."""
    signal_all(process, signal.SIGKILL)
    if process.stdout and not process.stdout.closed:
        return process.communicate()[1]
    return ""


def kill_driver(process: subprocess.Popen[str]) -> None:
    """SIGKILL to the Python driver alone: its JVM lives on for a moment."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()
