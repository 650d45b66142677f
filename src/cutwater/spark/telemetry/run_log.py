"""The log of a run: one JSON object per line, for each epoch and for other events.

It holds names and numbers, never a record and never a setting.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from cutwater.endings import kind_of_errno
from cutwater.errors import CutwaterError, Problem, RefusedError
from cutwater.spark.storage.local_paths import impossible, is_url, not_local
from cutwater.spark.telemetry.progress import RunProgress

__all__ = ["RunLog", "logging_to"]


class RunLog:
    """Writes events of a run of a flow, each at once."""

    def __init__(self, file: TextIO, flow: str, now: Callable[[], float] = time.time) -> None:
        self._file = file
        self._flow = flow
        self._now = now
        self._lock = threading.Lock()

    def note(self, progress: RunProgress) -> None:
        """Log a finished epoch."""
        self.event("epoch", **asdict(progress))

    def fail(self, error: CutwaterError) -> None:
        """Log that the run failed: only the codes, since messages may quote a record."""
        self.event("failed", codes=[problem.code for problem in error.problems])

    def event(self, event: str, **about: Any) -> None:
        """Log an event."""
        moment = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")
        entry = {"at": moment, "flow": self._flow, "event": event, **about}
        with self._lock, _writing(getattr(self._file, "name", "")):
            self._file.write(json.dumps(entry, default=str) + "\n")
            self._file.flush()


@contextmanager
def logging_to(path: str | Path, flow: str) -> Iterator[RunLog]:
    """Append to a file, for its owner only if it is new."""
    if is_url(path):
        raise RefusedError(not_local("the log", path))
    if problems := list(impossible("the log", path)):
        raise RefusedError(problems)
    with _writing(path):
        target = Path(path)
        is_new = not target.exists()
        file = target.open("a")
        if is_new:
            target.chmod(0o600)
    try:
        yield RunLog(file, flow)
    finally:
        with suppress(OSError):  # closing flushes a failed write again
            file.close()


@contextmanager
def _writing(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = Problem(
            "unwritable-log",
            f"the log {path} cannot be written: {error.strerror}",
            "choose another file, or free disk space",
        )
        raise kind_of_errno(error.errno)(problem) from None
