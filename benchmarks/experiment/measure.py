"""One repetition of a side: start it, observe the table, end it, and see that nothing is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from documents import RATE, write_corpus
from observer import Observer, latencies, make_table, wrong_words
from sides import Place, Side

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
from support.connectors.postgres_server import PostgresServer

__all__ = ["Failed", "Process", "measured", "place_of", "wait_until_seen"]

PATIENCE_S = 240.0
"""For the first row."""
REST_S = 20.0
"""For the last document that counts, after it is due."""


class Failed(Exception):
    """A side ended, showed nothing, or showed something wrong."""


class Process:
    """A side that runs, with all its processes, which are killed in the end."""

    def __init__(self, side: Side, place: Place) -> None:
        self._log = (place.folder / "log").open("ab")
        self._popen = subprocess.Popen(
            side.command(place),
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=side.environment(),
            cwd=place.folder,
            start_new_session=True,
        )

    def check(self) -> None:
        """Fail if it has ended."""
        if self._popen.poll() is not None:
            raise Failed(f"it ended with exit code {self._popen.returncode}")

    def check_until(self, end: float) -> None:
        """Wait until a time by the clock."""
        while time.time() < end:
            self.check()
            time.sleep(0.05)

    def kill(self) -> None:
        """All of it, at once."""
        for session in descendants(self._popen.pid):
            with suppress(ProcessLookupError):
                os.killpg(session, signal.SIGKILL)
        self._popen.wait()
        self._log.close()


def descendants(pid: int) -> set[int]:
    """The groups of a process and of those that it started, however deep."""
    parents: dict[int, tuple[int, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1]), int(fields[2])
    found = {pid}
    while more := {p for p, (parent, _) in parents.items() if parent in found} - found:
        found |= more
    return {parents[p][1] for p in found if p in parents}


@contextmanager
def place_of(server: PostgresServer, kept: Path) -> Iterator[Place]:
    """A folder and a table for a side; its log is kept in a file if it fails."""
    table = f"changes_{time.monotonic_ns()}"
    make_table(server.dsn, table)
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?user=tester"
    with tempfile.TemporaryDirectory(prefix="cutwater-experiment-") as scratch:
        place = Place(Path(scratch), server.dsn, url, table, RATE)
        write_corpus(place.folder / "corpus")
        try:
            yield place
        except Failed as failed:
            log = place.folder / "log"
            words = log.read_text(errors="replace") if log.exists() else ""
            kept.write_text(words)
            raise Failed(f"{failed} (its log is {kept})") from None


def wait_until_seen(process: Process, observer: Observer) -> None:
    """Wait for the first row."""
    deadline = time.monotonic() + PATIENCE_S
    while observer.first is None:
        process.check()
        if time.monotonic() > deadline:
            raise Failed(f"it showed nothing within {PATIENCE_S:g} s")
        time.sleep(0.05)


def measured(
    side: Side, server: PostgresServer, log: Path, warm_up: float, seconds: float
) -> dict[str, Any]:
    """The latencies in ms of the documents that were due in so many seconds after the warm-up.

    Its log is kept if it fails.
    """
    load = os.getloadavg()[0]
    with place_of(server, log) as place, Observer(server.dsn, place.table) as observer:
        process = Process(side, place)
        try:
            wait_until_seen(process, observer)
            start = time.time() + warm_up
            process.check_until(start + seconds)
            began = float(place.began.read_text())
            counted = _counted(observer, began, start, start + seconds, process)
        finally:
            process.kill()
        if wrong := wrong_words(server.dsn, place.table):
            raise Failed(f"{wrong} words have a change that is missing or doubled")
    return {"latencies_ms": counted, "load": [load, os.getloadavg()[0]], "at": time.time()}


def _counted(
    observer: Observer, began: float, start: float, end: float, process: Process
) -> list[float]:
    """The latencies of all that was due from start to end; waits for the last of them."""
    while True:
        process.check()
        found = [ms for due, ms in latencies(observer.rows, began, RATE, end) if due >= start]
        if all(ms is not None for ms in found):
            return [ms for ms in found if ms is not None]
        if time.time() > end + REST_S:
            missing = sum(ms is None for ms in found)
            raise Failed(f"{missing} of {len(found)} documents were not out {REST_S:g} s later")
        time.sleep(0.2)
