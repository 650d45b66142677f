"""From an event in a folder to its row in another session of PostgreSQL, on both engines.

    python benchmarks/realtime.py [--rate 50 500] [--levels 1 2] [--seconds 20]

Events come in files of JSON lines, one each 10 ms or more seldom, that appear by a rename. Another
session looks for rows every 2 ms. Both engines run the same flow to a table with early release, in
turns, each in a session of its own; the first seconds after the first row are warm-up. A server is
started for it, as it comes: every commit is on the disk. See README.md in this folder.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
from counting import Counted, Reading, running, scalar_flow
from early_release import WatchedTable
from feeding import FIRST, PARTITIONS, import_by_name, write_readings
from harness import Bench, Goal, Side
from latency import KEYS

import cutwater as cw
from cutwater.spark import postgres_table, run

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from support.connectors.postgres_server import PostgresServer, postgres_server

SHORTEST_S = 0.010
"""Between two files: events of a higher rate come several in a file."""
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


class Measured(WatchedTable):
    """Feeds a folder at a rate, in files that are not too many, and watches a table."""

    def __init__(self, folder: Path, rate: float, seconds: float, dsn: str, table: str) -> None:
        super().__init__(folder, rate, dsn, table)
        self._seconds = seconds

    def _feed(self) -> None:
        much = max(1, round(self._rate * SHORTEST_S))
        begin = time.monotonic()
        for number in itertools.count(step=much):
            if self._over.wait(max(0.0, begin + number / self._rate - time.monotonic())):
                return
            keys = [n % KEYS for n in range(number, number + much)]
            write_readings(self.source / f"{number:09}.jsonl", number, keys)
            now = time.monotonic()
            for each in range(number, number + much):
                self._sent[FIRST + each] = now


def once(
    server: PostgresServer, mode: str, rate: float, levels: int, seconds: float
) -> dict[str, float]:
    """Run one engine until enough was seen; the latencies."""
    table = f"counts_{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as scratch:
        folder = Path(scratch)
        sink = postgres_table(table=table, dsn=server.dsn, release="early", create=True)
        sink.make_ready("counts", Counted if levels == 1 else Parity)
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE INDEX ON {table} (position)")
        with Measured(folder, rate, seconds, server.dsn, table) as watched:
            run(
                flow_of(levels),
                sources={"readings": watched.source},
                sinks={"counts": sink},
                checkpoint=folder / "checkpoint",
                until="stopped",
                mode=mode,
                partitions=PARTITIONS,
                is_to_stop=lambda: watched.has_enough,
            )
            found = watched.latencies()
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
