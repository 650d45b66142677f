"""The JVM that this process started: what it died of, and how to end it without its help.

Nothing here calls into the JVM, so it works for one that is frozen, too. A JVM that this process
did not start is never touched.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from cutwater.errors import Problem

__all__ = [
    "OUT_OF_MEMORY_OPTION",
    "death_at_start",
    "death_of",
    "is_out_of_memory",
    "kill_own",
    "out_of_memory",
    "own",
    "ran_out_of_memory",
    "set_fork_server",
    "set_own",
]

OUT_OF_MEMORY_OPTION = "-XX:+ExitOnOutOfMemoryError"
"""After that error a JVM lacks threads, and may wait for them forever."""

_OUT_OF_MEMORY = (
    "java.lang.OutOfMemoryError",
    "org.apache.arrow.memory.OutOfMemoryException",
    "There is insufficient memory for the Java Runtime Environment",
)
_EXITS_OUT_OF_MEMORY = (3, 52)
"""Of Java's option, and of Spark's own handler."""
_BY_SIGNAL = 128
"""A shell adds it to the number of the signal that ended its program; Java does for SIGTERM."""
_DYING_S = 5.0
"""How long a JVM may take to exit once its connection broke."""
_TAIL = 64 << 10
"""Bytes at the end of a log in which an error is searched: logs may be large."""
_CGROUP_EVENTS = Path("/sys/fs/cgroup/memory.events")

_MORE = "give it more: [spark] 'spark.driver.memory' (it has 1g if nothing is set), or let epochs "
_SMALLER = "be smaller: max_bytes_per_epoch, max_rows_per_epoch; run it again: nothing is lost"

_own: subprocess.Popen[bytes] | None = None
_fork_server: subprocess.Popen[bytes] | None = None


def set_own(process: subprocess.Popen[bytes] | None) -> None:
    """Record the JVM that was started; it leads its own process group."""
    global _own
    _own = process


def own() -> subprocess.Popen[bytes] | None:
    """The JVM that this process started, dead or alive; None if it started none."""
    return _own


def set_fork_server(process: subprocess.Popen[bytes]) -> None:
    """Record the process that forks Python processes for the JVM, in its own session."""
    global _fork_server
    _fork_server = process


def kill_own() -> bool:
    """Kill the JVM and all its Python processes; False if none is alive.

    These end when their connections break, except one that is paused or never reads.
    """
    if _own is None or _own.poll() is not None:
        return False
    workers = _members(_own.pid)
    if _fork_server is not None:
        workers += [pid for pid in _members(_fork_server.pid) if pid != _fork_server.pid]
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(_own.pid, signal.SIGKILL)
    for pid in workers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        _own.wait(_DYING_S)
    return True


def _members(session: int) -> list[int]:
    """The processes of a session; Spark's Python processes are in groups of their own there.

    Empty if the system does not provide it.
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            _, _, fields = (entry / "stat").read_text().rpartition(")")
            if int(fields.split()[3]) == session:
                found.append(int(entry.name))
    return found


def death_of(process: subprocess.Popen[bytes], scratch: Path) -> Problem | None:
    """Why a JVM died, its last output, and what to set; None if it is alive."""
    try:
        code = process.wait(_DYING_S)
    except subprocess.TimeoutExpired:
        return None
    if code in _EXITS_OUT_OF_MEMORY or is_out_of_memory(_tail(scratch / "jvm.log")):
        return out_of_memory(scratch)
    why, hint = _cause(code, scratch)
    last = _last_line(scratch)
    return Problem("jvm-died", f"the JVM of the run {why}{last}", hint)


def death_at_start(process: subprocess.Popen[bytes], scratch: Path, begin: int) -> Problem | None:
    """Why a JVM that has ended died before it answered; None if it refused its settings.

    Its own output begins at this byte of the log.
    """
    with process, (scratch / "jvm.log").open("rb") as log:
        log.seek(begin)
        printed = log.read().decode("utf-8", "replace")
    if is_out_of_memory(printed):
        return out_of_memory(scratch)
    return death_of(process, scratch) if _signal_of(process.returncode) else None


def is_out_of_memory(message: str) -> bool:
    """Does an error or a log say that heap or buffers were exhausted?"""
    return any(error in message for error in _OUT_OF_MEMORY)


def ran_out_of_memory(scratch: Path) -> bool:
    """Does the end of Spark's log say so?"""
    return is_out_of_memory(_tail(scratch / "spark.log"))


def out_of_memory(scratch: Path) -> Problem:
    """The heap was too small."""
    return Problem(
        "jvm-out-of-memory",
        f"the JVM of the run had no memory left ({_kind_of_memory(scratch)})",
        _MORE + _SMALLER,
    )


def _kind_of_memory(scratch: Path) -> str:
    for name in ("jvm.log", "spark.log"):
        for line in reversed(_tail(scratch / name).splitlines()):
            for error in _OUT_OF_MEMORY:
                if error in line:
                    return line[line.index(error) :].rstrip()[:200]
    return _OUT_OF_MEMORY[0]


def _cause(code: int, scratch: Path) -> tuple[str, str]:
    again = "run it again: nothing is lost"
    number = _signal_of(code)
    if number == signal.SIGKILL:
        killer = (
            f"the kernel's OOM killer, by {_CGROUP_EVENTS}"
            if _oom_kills()
            else "most likely by the kernel's OOM killer (see dmesg), or by hand"
        )
        return (
            f"was killed by SIGKILL: {killer}",
            "let heap and Python workers fit the machine or the container: raise its memory, or "
            "lower [spark] 'spark.driver.memory' and the partitions that work at once "
            f"(master 'local[N]'); {again}",
        )
    if number == signal.SIGTERM:
        return (
            "was ended by SIGTERM, which reached it as well as the run",
            f"send SIGTERM to the run alone (systemd: KillMode=mixed); {again}",
        )
    if number:
        return (
            f"was ended by {signal.Signals(number).name}",
            f"it crashed: see hs_err_pid*.log and {scratch / 'jvm.log'}; use another Java "
            f"(JAVA_HOME, CUTWATER_JAVA) if it does so again; {again}",
        )
    return f"ended with exit code {code}", f"see {scratch / 'jvm.log'}; {again}"


def _signal_of(code: int) -> int:
    """The signal that ended a process; 0 if none did."""
    number = -code if code < 0 else code - _BY_SIGNAL
    return number if number in set(signal.Signals) else 0


def _oom_kills() -> bool:
    try:
        counts = dict(line.split() for line in _CGROUP_EVENTS.read_text().splitlines())
    except (OSError, ValueError):
        return False
    return int(counts.get("oom_kill", 0)) > 0


def _last_line(scratch: Path) -> str:
    for name in ("jvm.log", "spark.log"):
        lines = [line for line in _tail(scratch / name).splitlines() if line.strip()]
        if lines:
            return f"; {name} ends with: {lines[-1].strip()[:200]}"
    return ""


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
