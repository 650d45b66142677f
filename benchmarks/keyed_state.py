"""Keyed state: a running count and sum of 100,000 keys, against plain Structured Streaming.

    python benchmarks/keyed_state.py [--rows 1 10 100] [--keys 100000] [--json FILE] [--plot FILE]

All sides read the same Parquet files and write to Spark's ``noop`` sink, each as one query that
stays up; an epoch is one set of files that appears at once. Its time is what Spark reports
(``triggerExecution``). See README.md in this folder.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from counting import (
    READINGS,
    built_in_flow,
    native,
    pandas_groups,
    row_groups,
    scalar_flow,
    vectorised_flow,
)
from feeding import import_by_name
from harness import Bench, Goal, Side
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import cutwater as cw
from cutwater.spark.session import embedded_session

PARTITIONS = 2
FILES = 10
"""Of an epoch; each has a tenth of the keys, with all their rows."""
SLOW_FILES = {1: FILES, 10: 2, 100: 1}
"""Rows per key and epoch -> how many files of an epoch the slow sides get."""
LEAST_SECONDS = 6.0
"""A repetition runs epochs for at least so long: 30 s in five repetitions."""
WARM_UPS = 1
"""Repetitions that are not counted: some epochs of a quick side, one of a slow side."""


# --- the input -------------------------------------------------------------------------------


@dataclass
class Epochs:
    """Sets of Parquet files, made when they are first needed and kept."""

    folder: Path
    keys: int
    rows: int
    """Per key and epoch."""

    def files(self, epoch: int) -> list[Path]:
        """All files of an epoch."""
        folder = self.folder / f"{epoch:06}"
        paths = [folder / f"part-{number}.parquet" for number in range(FILES)]
        if not folder.exists():
            folder.mkdir(parents=True)
            for number, path in enumerate(paths):
                pa.parquet.write_table(self.table(epoch, number), path)
        return paths

    def table(self, epoch: int, number: int) -> pa.Table:
        """The rows of one file: its keys, each so many times, in any order."""
        rng = np.random.default_rng([epoch, number])
        own = np.arange(number, self.keys, FILES)
        indices = rng.permutation(np.repeat(np.arange(len(own), dtype=np.int32), self.rows))
        names = pa.array([f"user-{key:06}" for key in own])
        first = (epoch * FILES + number) * self.keys * self.rows
        return pa.table(
            {
                "position": np.arange(first, first + len(indices)),
                "key": pa.DictionaryArray.from_arrays(indices, names).cast(pa.string()),
                "value": rng.integers(0, 100, len(indices)),
            }
        )


class Inbox:
    """The folder that one side reads; a set of files appears in it by one rename."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sets = 0
        folder.mkdir(parents=True)

    def stream(self, spark: SparkSession) -> DataFrame:
        """All that is put in, as a stream."""
        return spark.readStream.schema(READINGS).parquet(f"{self._folder}/*")

    def put(self, paths: Iterable[Path]) -> None:
        """Let files appear."""
        hidden = self._folder / f".{self._sets:06}"
        hidden.mkdir()
        for path in paths:
            (hidden / path.name).hardlink_to(path)
        hidden.rename(self._newest)

    def clear(self) -> None:
        """Take away what has been read, so that looking for input costs the same in every epoch."""
        shutil.rmtree(self._newest)
        self._sets += 1

    @property
    def _newest(self) -> Path:
        return self._folder / f"{self._sets:06}"


# --- the sides -------------------------------------------------------------------------------

Build = Callable[[DataFrame, Path], DataFrame]
"""From the readings, with a folder for the checkpoint, to what comes out."""


@dataclass(frozen=True)
class Way:
    """One way to count."""

    name: str
    build: Build
    mode: str = "append"
    is_slow: bool = False
    is_per_epoch: bool = False
    """Does it emit once for each key and epoch, rather than for each row?"""


def of_flow(make: Callable[[], cw.Flow]) -> Build:
    """A flow, embedded in a query."""

    def build(readings: DataFrame, checkpoint: Path) -> DataFrame:
        from cutwater.spark import frame, transform

        source = frame(readings, order=["position"])
        return transform(make(), {"readings": source}, checkpoint=checkpoint)

    return build


PANDAS = Way("transformWithStateInPandas", lambda df, _: pandas_groups(df), is_slow=True)
ROWS = Way("transformWithState", lambda df, _: row_groups(df), is_slow=True)
NATIVE = Way("native groupBy().agg()", lambda df, _: native(df), "update", is_per_epoch=True)
VECTORISED = Way("Cutwater, vectorised task", of_flow(vectorised_flow))
SCALAR = Way("Cutwater, scalar task", of_flow(scalar_flow))
BUILT_IN = Way("Cutwater, built-in aggregate", of_flow(built_in_flow), is_per_epoch=True)
WAYS = {
    "pandas": PANDAS,
    "rows": ROWS,
    "native": NATIVE,
    "vectorised": VECTORISED,
    "scalar": SCALAR,
    "built-in": BUILT_IN,
}


@dataclass
class Running:
    """The query of one way, which runs an epoch when it is told to."""

    spark: SparkSession
    way: Way
    epochs: Epochs
    folder: Path
    least_seconds: float
    query: StreamingQuery | None = None
    done: int = 0

    def __post_init__(self) -> None:
        self._inbox = Inbox(self.folder / "inbox")

    def once(self) -> dict[str, float]:
        """Epochs for at least so many seconds; all rows by all the time."""
        rows = milliseconds = 0.0
        while rows == 0 or milliseconds < self.least_seconds * 1000:
            more_rows, more_ms = self._epoch()
            rows += more_rows
            milliseconds += more_ms
        return {"rows/s": rows / milliseconds * 1000}

    def _epoch(self) -> tuple[int, float]:
        files = self.epochs.files(self.done)
        if self.way.is_slow:
            share = SLOW_FILES.get(self.epochs.rows, FILES)
            at = self.done * share % FILES
            files = (files + files)[at : at + share]
        self._inbox.put(files)
        query = self.query = self.query or self._start()
        query.processAllAvailable()
        (progress,) = (p for p in query.recentProgress if p.batchId == self.done and p.numInputRows)
        expected = len(files) * self.epochs.keys // FILES * self.epochs.rows
        assert progress.numInputRows == expected, "an epoch was cut in two"
        self.done += 1
        self._inbox.clear()
        return progress.numInputRows, progress.durationMs["triggerExecution"]

    def _start(self) -> StreamingQuery:
        checkpoint = self.folder / "checkpoint"
        out = self.way.build(self._inbox.stream(self.spark), checkpoint)
        writer = out.writeStream.format("noop").outputMode(self.way.mode)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def stop(self) -> None:
        """End the query."""
        if self.query:
            self.query.stop()


# --- right or wrong --------------------------------------------------------------------------


def verify(spark: SparkSession, way: Way, epochs: Epochs, folder: Path) -> None:
    """Run two small epochs and compare what comes out with plain Python; fails in a sentence.

    Plain Structured Streaming gives the rows of a key in no order, so of the sums only those at
    the end of an epoch are compared.
    """
    inbox = Inbox(folder / "inbox")
    name = "verify_" + "".join(c if c.isalnum() else "_" for c in way.name)
    out = way.build(inbox.stream(spark), folder / "checkpoint").select("key", "count", "sum")
    writer = out.writeStream.format("memory").queryName(name).outputMode(way.mode)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    for epoch in range(2):
        inbox.put(epochs.files(epoch))
        query.processAllAvailable()
        inbox.clear()
    query.stop()
    found = [(row["key"], row["count"], row["sum"]) for row in spark.table(name).collect()]
    ends = ends_of(epochs, 2)
    counts = {(key, count) for key, count, _ in found}
    wanted = {
        (key, count)
        for key, last in ends
        for count in ([last] if way.is_per_epoch else range(last - epochs.rows + 1, last + 1))
    }
    is_right = counts == wanted and len(found) == len(wanted)
    at_ends = {(key, count): total for key, count, total in found if (key, count) in ends}
    if not (is_right and at_ends == ends):
        sys.exit(f"{way.name} computes something else: {sorted(found)[:5]} ...")


def ends_of(epochs: Epochs, count: int) -> dict[tuple[str, int], int]:
    """(key, count) at the end of each epoch -> sum, computed without Spark."""
    sums: dict[str, int] = defaultdict(int)
    ends: dict[tuple[str, int], int] = {}
    for epoch in range(count):
        for path in epochs.files(epoch):
            table = pa.parquet.read_table(path)
            for key, value in zip(*(table[c].to_pylist() for c in ("key", "value")), strict=True):
                sums[key] += value
        ends |= {(key, (epoch + 1) * epochs.rows): total for key, total in sums.items()}
    return ends


# --- measuring -------------------------------------------------------------------------------


def goals(rows: int, keys: int) -> list[Goal]:
    """What is wanted of a run."""
    condition = f"{keys:,} keys, {rows} row{'s' if rows > 1 else ''} per key per epoch"
    found = [Goal(BUILT_IN.name, NATIVE.name, "rows/s", at_least=0.5, condition=condition)]
    if rows == 1:
        found += [
            Goal(VECTORISED.name, PANDAS.name, "rows/s", at_least=100, condition=condition),
            Goal(VECTORISED.name, ROWS.name, "rows/s", at_least=20, condition=condition),
        ]
    return found


def measure(
    bench: Bench, spark: SparkSession, ways: Sequence[Way], keys: int, rows: int, scratch: Path
) -> None:
    """All ways with so many rows per key and epoch."""
    epochs = Epochs(scratch / "data", keys, rows)
    sides = [
        Running(
            spark,
            way,
            epochs,
            scratch / f"side-{number}",
            0.0 if bench.is_quick else LEAST_SECONDS,
        )
        for number, way in enumerate(ways)
    ]
    try:
        bench.compare(
            f"{keys:,} keys, {rows} row{'s' if rows > 1 else ''} per key per epoch",
            [Side(side.way.name, side.once) for side in sides],
            base=ways[0].name,
            goals=goals(rows, keys),
            warm_ups=WARM_UPS,
        )
    finally:
        for side in sides:
            side.stop()


def can_embed() -> bool:
    """Does this version have `transform`?"""
    import cutwater.spark

    return hasattr(cutwater.spark, "transform")


def main() -> int:
    """Measure all sizes."""
    bench = Bench("keyed_state", __doc__ or "")
    bench.parser.add_argument("--rows", type=int, nargs="+", help="per key and epoch")
    bench.parser.add_argument("--keys", type=int, help="3,000 if quick, else 100,000")
    bench.parser.add_argument("--sides", nargs="+", choices=list(WAYS), default=list(WAYS))
    given = bench.arguments()
    keys = given.keys or (3_000 if bench.is_quick else 100_000)
    sizes = given.rows or ([1, 10] if bench.is_quick else [1, 10, 100])
    ways = [WAYS[name] for name in given.sides]
    if not can_embed():
        bench.say("Cutwater's sides are left out: this version has no cutwater.spark.transform.")
        ways = [way for way in ways if way in (PANDAS, ROWS, NATIVE)]
    import_by_name()
    with tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as folder:
        scratch = Path(folder)
        bench.tell("starting Spark")
        spark = embedded_session(scratch / "spark", partitions=PARTITIONS)
        try:
            # The queries that wait should not be busy looking for work.
            spark.conf.set("spark.sql.streaming.pollingDelay", "200ms")
            small = Epochs(scratch / "small", 200, 3)
            for number, way in enumerate(ways):
                verify(spark, way, small, scratch / f"verify-{number}")
            bench.tell("all sides compute the same")
            for rows in sizes:
                measure(bench, spark, ways, keys, rows, scratch / f"rows-{rows}")
        finally:
            spark.stop()
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
