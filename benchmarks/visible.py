"""One run from generated records to a table of PostgreSQL, and when another session saw each row.

Events are due by the clock, at a rate. Another session looks for rows every 2 ms. The first seconds
after the first row are warm-up.
"""

from __future__ import annotations

import math
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from counting import Counted, Reading
from feeding import PARTITIONS
from latency import KEYS, LOOK_SECONDS
from stages import StampedSource, StampedTable, StampedUnfenced, stages_of

import cutwater as cw
from cutwater.spark import run

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from support.connectors.postgres_server import PostgresServer

__all__ = ["MICRO_BATCH", "MODES", "REAL_TIME", "Seen", "Trial", "reading"]

WARM_UP_SECONDS = 8.0
"""The first seconds are slow: the JVM compiles, and what was due before the start comes at once."""
PATIENCE_SECONDS = 3.0
"""Events that are not seen so long after the last one was due are late, however late."""
REAL_TIME, MICRO_BATCH = "real time", "micro-batches"
MODES = {REAL_TIME: "realtime", MICRO_BATCH: "microbatch"}
NEVER_SECONDS = 1e6


def reading(number: int) -> Reading:
    """The event of a number."""
    return Reading(number, f"user-{number % KEYS:07}", 1)


class Seen:
    """Watches a table from another session: when the row of each event was there."""

    def __init__(self, dsn: str, table: str, seconds: float, shown: int = 1) -> None:
        """One in `shown` events has a row."""
        self._dsn, self._seconds, self._shown = dsn, seconds, shown
        self._query = f"SELECT position FROM {table} WHERE position > %s"
        self.at: dict[int, float] = {}
        self._first = math.inf
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Seen:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def start(self) -> float:
        """From when on events count."""
        return self._first + WARM_UP_SECONDS

    def has_enough(self) -> bool:
        """Had everything that counts much more time than it needs?"""
        return time.time() > self.start + self._seconds + PATIENCE_SECONDS

    def due(self, first: float, rate: float) -> dict[int, float]:
        """When each event that counts was due, given when the first one was."""
        end = min(self.start + self._seconds, max(self.at.values(), default=math.inf))
        numbers = range(0, math.ceil((end - first) * rate), self._shown)
        due = {number: first + number / rate for number in numbers}
        return {number: at for number, at in due.items() if self.start <= at < end}

    def latencies(self, due: dict[int, float]) -> list[float]:
        """Of events, in ms.

        What was not seen counts as if it had been seen at last, so that a run that falls behind
        does not look like one that keeps up.
        """
        last = max(self.at.values())
        return [1000 * (self.at.get(number, last) - at) for number, at in due.items()]

    def _look(self) -> None:
        newest = -self._shown
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._over.wait(LOOK_SECONDS):
                for (position,) in connection.execute(self._query, (newest,)).fetchall():
                    self.at.setdefault(position, time.time())
                if self.at and self._first == math.inf:
                    self._first = time.time()
                while newest + self._shown in self.at:  # a bucket may be ahead of another
                    newest += self._shown


@dataclass(frozen=True)
class Trial:
    """One run of one engine."""

    server: PostgresServer
    flow: cw.Flow
    mode: str
    rate: float
    """Events a second."""
    seconds: float
    record: type = Counted
    shown: int = 1
    """One in so many events has a row."""
    snapshot_interval: float = 5.0
    batch_interval: float = 600.0
    """The length of Spark's batches, at whose ends nothing is released for a moment."""
    has_guarantee: bool = True
    """Without it: no ledger, no fence, no snapshot, and nothing waits for the plan."""
    has_stages: bool = False
    has_longest: bool = False

    def __call__(self) -> dict[str, float]:
        """Run until enough was seen; the latencies."""
        with tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as scratch:
            return self._run(Path(scratch))

    def _run(self, scratch: Path) -> dict[str, float]:
        table = f"counts_{time.monotonic_ns()}"
        stamps = scratch / "stamps"
        stamps.mkdir()
        noted = str(stamps) if self.has_stages else ""
        made: Callable[..., Any] = StampedTable if self.has_guarantee else StampedUnfenced
        sink = made(table=table, dsn=self.server.dsn, release="early", create=True, stamps=noted)
        sink.prepare("counts", self.record)
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE INDEX ON {table} (position)")
        source = StampedSource(
            reading, rows_per_second=self.rate, stamps=noted, is_synced=self.has_guarantee
        )
        with Seen(self.server.dsn, table, self.seconds, self.shown) as seen:
            run(
                self.flow,
                sources={"readings": source},
                sinks={"counts": sink},
                checkpoint=scratch / "checkpoint",
                until="stopped",
                mode=self.mode,
                partitions=PARTITIONS,
                is_to_stop=seen.has_enough,
                **(self._of_real_time() if self.mode == MODES[REAL_TIME] else {}),
            )
        due = seen.due(began(scratch / "checkpoint"), self.rate)
        found = seen.latencies(due)
        parts = statistics.quantiles(found, n=100, method="inclusive")
        figures = {"p50 ms": parts[49], "p95 ms": parts[94], "p99 ms": parts[98]}
        figures |= {"longest ms": max(found)} if self.has_longest else {}
        return {**figures, **(stages_of(stamps, due, seen.at) if self.has_stages else {})}

    def _of_real_time(self) -> dict[str, float]:
        interval = self.snapshot_interval if self.has_guarantee else NEVER_SECONDS
        return {"snapshot_interval": interval, "batch_interval": self.batch_interval}


def began(checkpoint: Path) -> float:
    """When the first event was due, by the log of the source."""
    texts = (path.read_text() for path in checkpoint.rglob("*") if _is_log(path))
    found = (re.search(r'"began": ?([0-9.]+)', text) for text in texts)
    return next(float(each[1]) for each in found if each)


def _is_log(path: Path) -> bool:
    return (
        path.is_file() and "scratch" not in path.parts and bool({"plan", "sources"} & {*path.parts})
    )
