"""What exactly-once adds to the latency of early release to PostgreSQL, at 50 events a second.

    python benchmarks/early_release.py [--rate 50] [--seconds 20]

The same flow, writer and inserts with and without ledger and fence, and `commit` beside them. Every
event is a file of one JSON line that appears by a rename; its latency ends when another session
sees its row, which it looks for every 2 ms. A server is started for it, as it comes: every commit
is on the disk. See README.md in this folder.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

import psycopg
from counting import scalar_flow
from feeding import FIRST, PARTITIONS, import_by_name
from harness import Bench, Comparison, Side, spread
from latency import LOOK_SECONDS, Enough, Watched
from pyspark.sql import SparkSession
from unfenced import Unfenced

from cutwater.spark import Progress, postgres_table, run
from cutwater.spark.session import embedded_session
from cutwater.spark.sinks import Sink

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from postgres_server import postgres_server

BASE = "early, without ledger and fence"
EARLY = "early"
COMMIT = "commit"
MOST_MS = 10.0
FIGURE = "p50 ms"


class WatchedTable(Watched):
    """Feeds a folder and watches a table."""

    def __init__(self, folder: Path, rate: float, seconds: float, dsn: str, table: str) -> None:
        super().__init__(folder, rate, seconds)
        self._dsn = dsn
        self._query = f"SELECT position FROM {table} WHERE position > %s"

    def _look(self) -> None:
        newest = FIRST - 1
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._over.wait(LOOK_SECONDS):
                found = connection.execute(self._query, (newest,)).fetchall()
                now = time.monotonic()
                for position, times in Counter(position for (position,) in found).items():
                    known = self._seen.setdefault(position, [])
                    known += [now] * (times - len(known))
                # a bucket may be ahead of another: what has a gap before it is looked at again
                while newest + 1 in self._seen:
                    newest += 1
                if self._seen and self._first_output is None:
                    self._first_output = now


def sink_of(side: str, dsn: str, table: str) -> Sink:
    """The sink of a side."""
    if side == BASE:
        return Unfenced(table=table, dsn=dsn, release="early")
    return postgres_table(table=table, dsn=dsn, release="early" if side == EARLY else "commit")


def drive(spark: SparkSession, watched: Watched, folder: Path, sink: Sink) -> None:
    """Run the flow until enough was seen."""

    def look(_progress: Progress) -> None:
        if watched.has_enough:
            raise Enough

    with contextlib.suppress(Enough):
        run(
            scalar_flow(),
            spark,
            sources={"readings": watched.source},
            sinks={"counts": sink},
            checkpoint=folder / "checkpoint",
            until="stopped",
            on_progress=look,
        )


def verdict(found: Comparison) -> str:
    """What ledger and fence add, repetition by repetition."""
    sides = found.values[FIGURE]
    added = [ours - base for ours, base in zip(sides[EARLY], sides[BASE], strict=True)]
    is_met = statistics.median(added) <= MOST_MS
    return (
        f"ledger and fence add {spread(added)} ms at p50; wanted at most {MOST_MS:g}: "
        f"{'met' if is_met else 'NOT met'}"
    )


def main() -> int:
    """All sides in turns, each time with a new table and a new checkpoint."""
    bench = Bench("early release", __doc__ or "")
    bench.parser.add_argument("--rate", type=float, default=50.0, help="events a second")
    bench.parser.add_argument("--seconds", type=float, help="4 if quick, else 20")
    given = bench.arguments()
    seconds = given.seconds or (4.0 if bench.is_quick else 20.0)
    import_by_name()
    numbers = itertools.count()
    with (
        tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as scratch,
        postgres_server(settings={}) as server,
    ):
        spark = embedded_session(Path(scratch) / "spark", partitions=PARTITIONS)

        def once(side: str) -> dict[str, float]:
            table = f"counts_{next(numbers)}"
            folder = Path(scratch) / table
            server.execute(
                f"CREATE TABLE {table} (position bigint NOT NULL, key text NOT NULL,"
                " count bigint NOT NULL, sum bigint NOT NULL)",
                f"CREATE INDEX ON {table} (position)",
            )
            with WatchedTable(folder, given.rate, seconds, server.dsn, table) as watched:
                drive(spark, watched, folder, sink_of(side, server.dsn, table))
            found = watched.latencies()
            return {
                FIGURE: statistics.median(found),
                "p95 ms": statistics.quantiles(found, n=20, method="inclusive")[-1],
            }

        try:
            found = bench.compare(
                f"{given.rate:g} events/s to PostgreSQL",
                [Side(name, partial(once, name)) for name in (BASE, EARLY, COMMIT)],
                base=BASE,
                warm_ups=0 if bench.is_quick else 1,
            )
            bench.say(verdict(found))
        finally:
            spark.stop()
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
