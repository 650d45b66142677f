"""Latency at 50 events a second: a flow against the bare Spark query with the same stages.

    python benchmarks/latency.py [--rate 50] [--seconds 20]

Every event is a file of one JSON line that appears by a rename; its latency ends when it is seen
in the output folder, which is looked at every 2 ms. Events are measured from some seconds after
the first output on. See README.md in this folder.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bare_query import start_bare_query
from counting import scalar_flow
from feeding import (
    FIRST,
    PARTITIONS,
    Enough,
    import_by_name,
    new_files,
    read_lines,
    write_readings,
)
from harness import Bench, Goal, Side
from pyspark.sql import SparkSession

from cutwater.spark import RunProgress, run
from cutwater.spark.embedded.session import embedded_session

KEYS = 100
WARM_UP_SECONDS = 3.0
LOOK_SECONDS = 0.002
PATIENCE_SECONDS = 30.0


class Watched:
    """Feeds a folder and watches another one, in threads, until enough was seen."""

    def __init__(self, folder: Path, rate: float, seconds: float) -> None:
        self.source, self.sink = folder / "in", folder / "out"
        self.source.mkdir(parents=True)
        self._rate = rate
        self._seconds = seconds
        self._sent: dict[int, float] = {}
        self._seen: dict[int, list[float]] = {}
        self._first_output: float | None = None
        self._over = threading.Event()
        self._threads = [threading.Thread(target=t, daemon=True) for t in (self._feed, self._look)]

    def __enter__(self) -> Watched:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    @property
    def has_enough(self) -> bool:
        """Have all events that are measured come out, or had much more time than they need?"""
        if self._first_output is None or time.monotonic() < self._end:
            return False
        is_late = time.monotonic() > self._end + PATIENCE_SECONDS
        return is_late or all(number in self._seen for number in self._measured())

    @property
    def _start(self) -> float:
        assert self._first_output is not None, "nothing came out"
        return self._first_output + WARM_UP_SECONDS

    @property
    def _end(self) -> float:
        return self._start + self._seconds

    def _feed(self) -> None:
        begin = time.monotonic()
        for number in itertools.count():
            if self._over.wait(max(0.0, begin + number / self._rate - time.monotonic())):
                return
            write_readings(self.source / f"{number:09}.jsonl", number, [number % KEYS])
            self._sent[FIRST + number] = time.monotonic()

    def _look(self) -> None:
        known: set[str] = set()
        while not self._over.wait(LOOK_SECONDS):
            found = list(new_files(self.sink, known))
            now = time.monotonic()
            for record in read_lines(found):
                self._seen.setdefault(record["position"], []).append(now)
            if self._seen and self._first_output is None:
                self._first_output = now

    def _measured(self) -> list[int]:
        sent = list(self._sent.copy().items())
        return [number for number, at in sent if self._start <= at < self._end]

    def latencies(self) -> list[float]:
        """Of all events that were measured, in milliseconds; fails if one is missing or double."""
        measured = self._measured()
        assert measured, "nothing was measured"
        for number in measured:
            if len(self._seen.get(number, [])) != 1:
                sys.exit(f"event {number} came out {len(self._seen.get(number, []))} times")
        return [(self._seen[number][0] - self._sent[number]) * 1000 for number in measured]


def cutwater(spark: SparkSession, watched: Watched, folder: Path) -> None:
    """The flow, run until enough was seen."""

    def look(_progress: RunProgress) -> None:
        if watched.has_enough:
            raise Enough

    with contextlib.suppress(Enough):
        run(
            scalar_flow(),
            spark,
            sources={"readings": watched.source},
            sinks={"counts": watched.sink},
            checkpoint=folder / "checkpoint",
            until="stopped",
            on_progress=look,
        )


def bare(spark: SparkSession, watched: Watched, folder: Path, *, keeps_state: bool) -> None:
    """The bare query, until enough was seen."""
    query = start_bare_query(
        spark, watched.source, watched.sink, folder / "checkpoint", keeps_state=keeps_state
    )
    while query.isActive and not watched.has_enough:
        time.sleep(0.1)
    query.stop()
    error = query.exception()
    if error is not None:
        raise error


Drive = Callable[[SparkSession, Watched, Path], None]
SIDES: dict[str, Drive] = {
    "bare Spark query": partial(bare, keeps_state=True),
    "Cutwater, scalar task": cutwater,
    "bare Spark query, no state": partial(bare, keeps_state=False),
}
WARM_UPS = 3
"""The JVM is twice as fast after a minute."""


def main() -> int:
    """Both sides in turns, each time with a new checkpoint."""
    bench = Bench("latency", __doc__ or "")
    bench.parser.add_argument("--rate", type=float, default=50.0, help="events a second")
    bench.parser.add_argument("--seconds", type=float, help="4 if quick, else 20")
    given = bench.arguments()
    seconds = given.seconds or (4.0 if bench.is_quick else 20.0)
    import_by_name()
    with tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as scratch:
        spark = embedded_session(Path(scratch) / "spark", partitions=PARTITIONS)
        numbers = itertools.count()

        def once(drive: Drive) -> dict[str, float]:
            folder = Path(scratch) / f"run-{next(numbers)}"
            with Watched(folder, given.rate, seconds) as watched:
                drive(spark, watched, folder)
            found = watched.latencies()
            return {
                "p50 ms": statistics.median(found),
                "p95 ms": statistics.quantiles(found, n=20, method="inclusive")[-1],
            }

        base, ours, _ = SIDES
        try:
            bench.compare(
                f"{given.rate:g} events/s",
                [Side(name, partial(once, drive)) for name, drive in SIDES.items()],
                base=base,
                goals=[Goal(ours, base, "p50 ms", at_most=1.1)],
                warm_ups=1 if bench.is_quick else WARM_UPS,
            )
        finally:
            spark.stop()
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
