"""Does the ledger of PostgreSQL grow at the commits of real-time ticks? 100 a second, 30 minutes.

    python benchmarks/ledger_bloat.py [--commits 100] [--minutes 30] [--every 60]

Two writers, as two tasks have, each release a tick of eight buckets with a row each, by the sink
itself: its transaction, its ledger. Printed over the time are the sizes of the ledger's tables and
their indexes, the dead tuples, how many updates stayed on their page (HOT), and how long a commit
takes. A server is started for it, as it comes, with its own autovacuum. See README.md in this
folder.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cutwater.spark import postgres_table
from cutwater.spark.connectors.base.sink import BucketRows, Claim
from cutwater.spark.connectors.postgres.sink import PostgresTable

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from support.connectors.postgres_server import PostgresServer, postgres_server

WRITERS = 2
BUCKETS = 16
SIZES = """
SELECT pg_relation_size(c.oid), pg_indexes_size(c.oid), n_dead_tup, n_tup_upd, n_tup_hot_upd
FROM pg_class c JOIN pg_stat_user_tables s ON s.relid = c.oid WHERE c.relname = '{table}'
"""
COLUMNS = ["minute", "commits", "table KiB", "index KiB", "dead", "HOT %", "owner KiB", "p50 ms"]


@dataclass(frozen=True)
class Row:
    """What is shown."""

    bucket: int
    tick: int


class Writer:
    """Releases ticks at a rate, by the clock; one that is late goes on with the next at once."""

    def __init__(self, sink: PostgresTable, claim: Claim, number: int, every_s: float) -> None:
        self._sink, self._claim, self._number, self._every_s = sink, claim, number, every_s
        self.took: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._release, daemon=True)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _release(self) -> None:
        began, tick = time.monotonic(), 0
        while not self._over.wait(began + tick * self._every_s - time.monotonic()):
            rows = [
                BucketRows(bucket, [tick.to_bytes(8, "big")], [Row(bucket, tick)])
                for bucket in range(self._number, BUCKETS, WRITERS)
            ]
            start = time.perf_counter()
            self._sink.write(self._claim, tick, Row, rows)
            self.took.append(1000 * (time.perf_counter() - start))
            tick += 1


def line(server: PostgresServer, minute: float, commits: int, took: list[float]) -> list[str]:
    """What there is now; `took` has the commits since the line before."""
    size, indexes, dead, updated, hot = server.execute(SIZES.format(table="cutwater_buckets"))[0]
    owner = server.execute(SIZES.format(table="cutwater_ledger"))[0][0]
    median = statistics.median(took) if took else 0.0
    share = 100 * hot / updated if updated else 100.0
    kib = [f"{each / 1024:,.0f}" for each in (size, indexes)]
    numbers = [f"{dead:,}", f"{share:.2f}", f"{owner / 1024:,.0f}", f"{median:.2f}"]
    return [f"{minute:.0f}", f"{commits:,}", *kib, *numbers]


def main() -> int:
    """Release ticks, and look at the ledger meanwhile."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commits", type=float, default=100.0, help="a second")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two looks")
    given = parser.parse_args()
    table = Table(box=None, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="right")
    with (
        tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as scratch,
        postgres_server(settings={}) as server,
    ):
        sink = postgres_table(table="shown", dsn=server.dsn, release="early", create=True)
        sink.prepare("shown", Row)
        claim = Claim("flow", "shown", "query", 1, scratch, is_bulk_synchronous=False)
        sink.claim(claim)
        every_s = WRITERS / given.commits
        writers = [Writer(sink, claim, number, every_s) for number in range(WRITERS)]
        with writers[0], writers[1]:
            began, seen = time.monotonic(), 0
            while time.monotonic() < began + 60 * given.minutes:
                time.sleep(given.every)
                took = [each for writer in writers for each in writer.took[seen:]]
                seen = min(len(writer.took) for writer in writers)
                commits = sum(len(writer.took) for writer in writers)
                found = line(server, (time.monotonic() - began) / 60, commits, took)
                table.add_row(*found)
                print(" ".join(found), file=sys.stderr, flush=True)
    Console(width=110, highlight=False).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
