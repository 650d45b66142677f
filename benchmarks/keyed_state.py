"""Keyed state: a running count and sum of 100,000 keys, against plain Structured Streaming.

    python benchmarks/keyed_state.py [--rows 1 10 100] [--keys 100000] [--json FILE] [--plot FILE]

All sides read the same Parquet files and write to Spark's ``noop`` sink, each as one query that
stays up; an epoch is one set of files that appears at once. Its time is what Spark reports
(``triggerExecution``). See README.md in this folder.
"""

from __future__ import annotations

import queue
import shutil
import sys
import tempfile
import threading
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
from dropping import Dropping
from feeding import Enough, import_by_name, read_lines
from harness import Bench, Goal, Side
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import cutwater as cw
from cutwater.spark import RunProgress, parquet, run
from cutwater.spark.connectors.base.source import Binding
from cutwater.spark.embedded.session import embedded_session

KEYS = 100_000
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
    build: Build | None
    """None: a flow that reads the files by itself."""
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
BUILT_IN = Way(
    "Cutwater, built-in aggregate on a DataFrame", of_flow(built_in_flow), is_per_epoch=True
)
OWN = Way("Cutwater, built-in aggregate", None, is_per_epoch=True)
WAYS = {
    "pandas": PANDAS,
    "rows": ROWS,
    "native": NATIVE,
    "vectorised": VECTORISED,
    "scalar": SCALAR,
    "built-in": BUILT_IN,
    "own": OWN,
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
        assert self.way.build
        checkpoint = self.folder / "checkpoint"
        out = self.way.build(self._inbox.stream(self.spark), checkpoint)
        writer = out.writeStream.format("noop").outputMode(self.way.mode)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def stop(self) -> None:
        """End the query."""
        if self.query:
            self.query.stop()


class RunningFlow(Running):
    """A flow that reads the files by its own source, in a run that stays up."""

    def __post_init__(self) -> None:
        self._folder = self.folder / "inbox"
        self._folder.mkdir(parents=True)
        self._reports: queue.Queue[RunProgress | Exception] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._is_over = False

    def _epoch(self) -> tuple[int, float]:
        """All that is reported of a set of files, should it be read in more than one epoch."""
        files = self.epochs.files(self.done)
        put_one_by_one(self._folder, self.done, files)
        self.done += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        rows, milliseconds = 0, 0.0
        while rows < self.epochs.keys * self.epochs.rows:
            report = self._reports.get(timeout=600)
            if isinstance(report, Exception):
                raise report
            rows += report.sources["readings"].read
            milliseconds += report.duration_ms
        for path in self._folder.iterdir():
            path.unlink()
        return rows, milliseconds

    def _run(self) -> None:
        try:
            run(
                built_in_flow(),
                self.spark,
                sources={"readings": whole_folder(self._folder)},
                sinks={"counts": Dropping()},
                checkpoint=self.folder / "checkpoint",
                until="stopped",
                on_progress=self._note,
            )
        except Enough:
            pass
        except Exception as error:  # raised where a report is waited for
            self._reports.put(error)

    def _note(self, report: RunProgress) -> None:
        self._reports.put(report)
        if self._is_over:
            raise Enough

    def stop(self) -> None:
        """Let one more epoch come, and end with it."""
        if self._thread:
            self._is_over = True
            put_one_by_one(self._folder, self.done, self.epochs.files(0)[:1])
            self._thread.join()


def put_one_by_one(folder: Path, number: int, files: Iterable[Path]) -> None:
    """Let files appear in a folder that is read by a flow."""
    for path in files:
        (folder / f"{number:06}-{path.name}").hardlink_to(path)


def whole_folder(folder: Path) -> Binding:
    """All that is there in one epoch."""
    return parquet(str(folder), max_rows_per_epoch=10**9, max_bytes_per_epoch=1 << 40)


# --- right or wrong --------------------------------------------------------------------------


def verify(spark: SparkSession, way: Way, epochs: Epochs, folder: Path) -> None:
    """Run two small epochs and compare what comes out with plain Python; fails in a sentence.

    Plain Structured Streaming gives the rows of a key in no order, so of the sums only those at
    the end of an epoch are compared.
    """
    found = shown(spark, way, epochs, folder)
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


def shown(
    spark: SparkSession, way: Way, epochs: Epochs, folder: Path
) -> list[tuple[str, int, int]]:
    """What a way gives for two epochs: key, count and sum."""
    if way.build is None:
        return shown_by_flow(spark, epochs, folder)
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
    return [(row["key"], row["count"], row["sum"]) for row in spark.table(name).collect()]


def shown_by_flow(spark: SparkSession, epochs: Epochs, folder: Path) -> list[tuple[str, int, int]]:
    """The same, of the flow that reads the files by itself."""
    inbox = folder / "inbox"
    inbox.mkdir(parents=True)
    for epoch in range(2):
        put_one_by_one(inbox, epoch, epochs.files(epoch))
        run(
            built_in_flow(),
            spark,
            sources={"readings": whole_folder(inbox)},
            sinks={"counts": folder / "out"},
            checkpoint=folder / "checkpoint",
        )
    lines = read_lines((folder / "out").glob("epoch=*/*.jsonl"))
    return [(line["key"], line["count"], line["sum"]) for line in lines]


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
    """What is wanted of a run of full size."""
    if keys != KEYS:
        return []
    condition = f"{keys:,} keys, {rows} row{'s' if rows > 1 else ''} per key per epoch"
    found = [
        Goal(name, NATIVE.name, "rows/s", at_least=0.5, condition=condition)
        for name in (BUILT_IN.name, OWN.name)
    ]
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
        (Running if way.build else RunningFlow)(
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


def main() -> int:
    """Measure all sizes."""
    bench = Bench("keyed_state", __doc__ or "")
    bench.parser.add_argument("--rows", type=int, nargs="+", help="per key and epoch")
    bench.parser.add_argument("--keys", type=int, help="3,000 if quick, else 100,000")
    bench.parser.add_argument("--sides", nargs="+", choices=list(WAYS), default=list(WAYS))
    given = bench.arguments()
    keys = given.keys or (3_000 if bench.is_quick else KEYS)
    sizes = given.rows or ([1, 10] if bench.is_quick else [1, 10, 100])
    ways = [WAYS[name] for name in given.sides]
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
