"""From an event being due to its row in another session of PostgreSQL, on both engines.

    python benchmarks/realtime.py [--rate 50 500] [--levels 1 2] [--seconds 20]

Events are generated records, each due at its time by the clock. Another session looks for rows
every 2 ms. Both engines run the same flow to a table with early release, in
turns, each in a session of its own; the first seconds after the first row are warm-up. A server is
started for it, as it comes: every commit is on the disk. See README.md in this folder.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
from counting import Counted, Reading, running, scalar_flow
from feeding import PARTITIONS, import_by_name
from harness import Bench, Goal, Side
from latency import KEYS, LOOK_SECONDS

import cutwater as cw
from cutwater.spark import generate, postgres_table, run

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from support.connectors.postgres_server import PostgresServer, postgres_server

WARM_UP_SECONDS = 8.0
"""The first seconds are slow: the JVM compiles, and what was due before the start comes at once."""
REAL_TIME, MICRO_BATCH = "real time", "micro-batches"
MODES = {REAL_TIME: "realtime", MICRO_BATCH: "microbatch"}


@dataclass(frozen=True)
class Parity:
    """What comes out of the second level, for each reading."""

    position: int
    odd: int
    count: int


@cw.task(initial=0)
def by_parity(state: int, counted: Counted) -> tuple[int, list[Parity]]:
    """Count what the first level sent."""
    return state + 1, [Parity(counted.position, counted.count % 2, state + 1)]


def odd(counted: Counted) -> int:
    """The key of the second level."""
    return counted.position % 16


def flow_of(levels: int) -> cw.Flow:
    """One level: a count by key. Two: what it sends is counted again, by another key."""
    if levels == 1:
        return scalar_flow()
    flow = cw.Flow("two levels")
    counted = flow.source("readings", Reading).key_by("key").apply(running)
    flow.sink("counts", counted.key_by(odd).apply(by_parity))
    return flow


def reading(number: int) -> Reading:
    """The event of a number."""
    return Reading(number, f"user-{number % KEYS:07}", 1)


class Seen:
    """Watches a table from another session: when the row of each event was there."""

    def __init__(self, dsn: str, table: str, seconds: float) -> None:
        self._dsn, self._seconds = dsn, seconds
        self._query = f"SELECT position FROM {table} WHERE position > %s"
        self.at: dict[int, float] = {}
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
        return min(self.at.values(), default=math.inf) + WARM_UP_SECONDS

    def has_enough(self) -> bool:
        """Was everything that counts seen?"""
        return time.time() > self.start + self._seconds

    def _look(self) -> None:
        newest = -1
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._over.wait(LOOK_SECONDS):
                for (position,) in connection.execute(self._query, (newest,)).fetchall():
                    self.at.setdefault(position, time.time())
                while newest + 1 in self.at:  # a bucket may be ahead of another
                    newest += 1


def began(checkpoint: Path) -> float:
    """When the first event was due, by the log of the source."""
    texts = (path.read_text() for path in checkpoint.rglob("*") if _is_log(path))
    found = (re.search(r'"began": ?([0-9.]+)', text) for text in texts)
    return next(float(each[1]) for each in found if each)


def _is_log(path: Path) -> bool:
    return (
        path.is_file() and "scratch" not in path.parts and bool({"plan", "sources"} & {*path.parts})
    )


def once(
    server: PostgresServer, mode: str, rate: float, levels: int, seconds: float
) -> dict[str, float]:
    """Run one engine until enough was seen; the latencies."""
    table = f"counts_{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as scratch:
        checkpoint = Path(scratch) / "checkpoint"
        sink = postgres_table(table=table, dsn=server.dsn, release="early", create=True)
        sink.make_ready("counts", Counted if levels == 1 else Parity)
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE INDEX ON {table} (position)")
        with Seen(server.dsn, table, seconds) as seen:
            run(
                flow_of(levels),
                sources={"readings": generate(reading, rows_per_second=rate)},
                sinks={"counts": sink},
                checkpoint=checkpoint,
                until="stopped",
                mode=mode,
                partitions=PARTITIONS,
                is_to_stop=seen.has_enough,
            )
        first = began(checkpoint)
        due = {n: first + n / rate for n in seen.at}
    end = seen.start + seconds
    found = [1000 * (at - due[n]) for n, at in seen.at.items() if seen.start <= due[n] < end]
    parts = statistics.quantiles(found, n=100, method="inclusive")
    return {"p50 ms": parts[49], "p95 ms": parts[94], "p99 ms": parts[98]}


def main() -> int:
    """Both engines at each rate and depth."""
    bench = Bench("real time", __doc__ or "")
    bench.parser.add_argument("--rate", type=float, nargs="*", default=[50.0, 500.0])
    bench.parser.add_argument("--levels", type=int, nargs="*", default=[1, 2])
    bench.parser.add_argument("--seconds", type=float, default=20.0)
    given = bench.arguments()
    import_by_name()
    with postgres_server(settings={}) as server:
        for levels, rate in itertools.product(given.levels, given.rate):
            sides = [
                Side(name, partial(once, server, mode, rate, levels, given.seconds))
                for name, mode in MODES.items()
            ]
            goals = [Goal(REAL_TIME, MICRO_BATCH, "p50 ms", at_most=0.1)]
            bench.compare(
                f"{rate:g} events/s, levels: {levels}", sides, base=MICRO_BATCH, goals=goals
            )
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
