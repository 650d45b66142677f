"""What exactly-once adds to the latency of early release to PostgreSQL, at 50 events a second.

    python benchmarks/early_release.py [--rate 50] [--repetitions 30]

The same flow, writer and inserts with and without ledger and fence, and `commit` beside them, in
turns of some epochs within one run. Every event is a file of one JSON line that appears by a
rename; its latency ends when another session sees its row, which it looks for every 2 ms. A server
is started for it, as it comes: every commit is on the disk. See README.md in this folder.
"""

from __future__ import annotations

import bisect
import contextlib
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg
from counting import scalar_flow
from feeding import FIRST, PARTITIONS, Enough, import_by_name
from harness import Bench, Comparison, number
from in_turns import COMMIT, EARLY, STRETCH, UNFENCED, InTurns
from latency import LOOK_SECONDS, Watched
from pyspark.sql import SparkSession

from cutwater.spark import RunProgress, run
from cutwater.spark.embedded.session import embedded_session

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from support.connectors.postgres_server import postgres_server

MOST_MS = 10.0
FIGURE = "p50 ms"
SIDES = (UNFENCED, EARLY, COMMIT)
WARM_UPS = 8
"""Rounds of all sides before any counts: the JVM is twice as fast after a minute."""
SETTLING = 4
"""Epochs at the beginning of a stretch that do not count: their events waited for another side.
Nor does the last one: the end of an epoch is reported a little later."""


class WatchedTable(Watched):
    """Feeds a folder and watches a table."""

    def __init__(self, folder: Path, rate: float, dsn: str, table: str) -> None:
        super().__init__(folder, rate, seconds=0)
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

    def latencies_of(self, epochs: Sequence[tuple[float, int]]) -> dict[int, list[float]]:
        """Of each epoch, given when each was over; fails if an event came out twice."""
        ends = [end for end, _ in epochs]
        found: dict[int, list[float]] = {}
        for event, times in self._seen.items():
            if len(times) != 1:
                sys.exit(f"event {event} came out {len(times)} times")
            at = bisect.bisect_left(ends, times[0])
            if at < len(epochs):
                found.setdefault(epochs[at][1], []).append((times[0] - self._sent[event]) * 1000)
        return found


def drive(
    spark: SparkSession, watched: WatchedTable, folder: Path, sink: InTurns, bench: Bench
) -> list[tuple[float, int]]:
    """Run the flow until all had their turns; when each epoch was over."""
    epochs: list[tuple[float, int]] = []

    def look(progress: RunProgress) -> None:
        epochs.append((time.monotonic(), progress.epoch))
        done = progress.epoch + 1
        if done % (STRETCH * len(SIDES)) == 0:
            bench.tell(f"{done // STRETCH} of {len(sink.turns)} turns")
        if done > STRETCH * len(sink.turns):
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
    return epochs


def noted(
    found: Comparison, sink: InTurns, latencies: Mapping[int, Sequence[float]], warm_ups: int
) -> Comparison:
    """Note what each turn had."""
    turns: dict[int, list[float]] = {}
    for epoch, values in latencies.items():
        is_settled = SETTLING <= epoch % STRETCH < STRETCH - 1
        if is_settled and epoch < STRETCH * len(sink.turns):
            turns.setdefault(sink.turn(epoch), []).extend(values)
    rounds = sorted(turns)[warm_ups * len(SIDES) :]
    for turn in sorted(rounds, key=lambda turn: SIDES.index(sink.turns[turn])):
        values = turns[turn]
        p95 = statistics.quantiles(values, n=20, method="inclusive")[-1]
        found.note(sink.turns[turn], {FIGURE: statistics.median(values), "p95 ms": p95})
    return found


def verdict(found: Comparison) -> str:
    """What ledger and fence add, round by round."""
    sides = found.values[FIGURE]
    added = [ours - base for ours, base in zip(sides[EARLY], sides[UNFENCED], strict=True)]
    low, middle, high = statistics.quantiles(added, n=4, method="inclusive")
    is_met = middle <= MOST_MS
    return (
        f"ledger and fence add {number(middle)} ms at p50 (half of all rounds: {number(low)} to "
        f"{number(high)}; {sum(one <= 0 for one in added)} of {len(added)} rounds nothing or less);"
        f" wanted at most {MOST_MS:g}: {'met' if is_met else 'NOT met'}"
    )


def main() -> int:
    """One run, in which all sides have their turns, in an order shuffled anew for each round."""
    bench = Bench("early release", __doc__ or "")
    bench.parser.add_argument("--rate", type=float, default=50.0, help="events a second")
    given = bench.arguments()
    rounds = given.repetitions or (2 if bench.is_quick else 30)
    warm_ups = 1 if bench.is_quick else WARM_UPS
    rng = random.Random(given.seed)
    turns = [side for _ in range(warm_ups + rounds) for side in rng.sample(SIDES, len(SIDES))]
    import_by_name()
    with (
        tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as scratch,
        postgres_server(settings={}) as server,
    ):
        server.execute(
            "CREATE TABLE counts (position bigint NOT NULL, key text NOT NULL,"
            " count bigint NOT NULL, sum bigint NOT NULL)",
            "CREATE INDEX ON counts (position)",
        )
        folder = Path(scratch) / "run"
        sink = InTurns(table="counts", dsn=server.dsn, release="early", turns=tuple(turns))
        spark = embedded_session(Path(scratch) / "spark", partitions=PARTITIONS)
        try:
            with WatchedTable(folder, given.rate, server.dsn, "counts") as watched:
                epochs = drive(spark, watched, folder, sink, bench)
        finally:
            spark.stop()
        found = Comparison(f"{given.rate:g} events/s to PostgreSQL", UNFENCED)
        bench.add(noted(found, sink, watched.latencies_of(epochs), warm_ups))
        bench.say(verdict(found))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
