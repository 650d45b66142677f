"""What a row of one hot key takes in a Python worker, beyond the record itself.

::

    python benchmarks/skew.py --rows 1000000

All rows have one key, so one bucket gets the whole epoch. Each stage (reading, the stateful
operator, the writer) runs in a process of its own, without a JVM: it is given what Spark would give
it, some rows at a time, and what it gives back goes to a file. Shown is how far the process grew
above where it stood before the first row, divided by the rows, less the bytes of a record as JSON.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Row

import cutwater as cw
from cutwater.spark import folder, json_lines
from cutwater.spark.exchange.envelope import ROW_SCHEMA
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import dump_job
from cutwater.spark.microbatch import writer
from cutwater.spark.microbatch.source_reader import EpochDataSource
from cutwater.spark.microbatch.stateful_operator import Level
from cutwater.spark.microbatch.writer import SinksWriter

STAGES = ("read", "operator", "write")


@dataclass(frozen=True)
class Reading:
    """What a sensor says."""

    sensor: str
    value: float


@dataclass(frozen=True)
class Mean:
    """The mean of all it said so far."""

    sensor: str
    mean: float


@cw.task(initial=(0, 0.0))
def mean(seen: tuple[int, float], reading: Reading) -> tuple[tuple[int, float], list[Mean]]:
    """Keep count and total."""
    count, total = seen[0] + 1, seen[1] + reading.value
    return (count, total), [Mean(reading.sensor, total / count)]


def job_in(root: Path) -> Job:
    """A running mean by sensor, from a folder to a folder."""
    flow = cw.Flow("skew")
    means = flow.source("readings", Reading).key_by("sensor").apply(mean)
    flow.sink("means", means)
    endless = {"max_bytes_per_epoch": 1 << 40, "max_rows_per_epoch": 1 << 40}
    sources = {"readings": json_lines(str(root / "in"), **endless)}
    sinks = {"means": folder(str(root / "out"))}
    return Job(flow, sources, sinks, "skew", 1, 16, str(root / "checkpoint"), parallelism=1)


class _Map:
    """The state of the bucket."""

    def __init__(self) -> None:
        self.items: dict[Any, Any] = {}

    def getValue(self, key: Any) -> Any:
        return self.items.get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self.items[key] = value

    def removeKey(self, key: Any) -> None:
        self.items.pop(key, None)

    def iterator(self) -> Iterator[Any]:
        return iter(list(self.items.items()))


class _Handle:
    def getMapState(self, *_: Any) -> _Map:
        return _Map()


def memory() -> int:
    """The most that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def stored(path: Path) -> Iterator[tuple[Any, ...]]:
    """Rows that a stage before has left, one at a time."""
    with path.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return


def store(path: Path, rows: Iterator[tuple[Any, ...]]) -> int:
    """Keep rows as they come; how far the process had grown before the first."""
    before = memory()
    with path.open("wb") as file:
        for row in rows:
            pickle.dump(row, file)
    return before


def read(root: Path) -> int:
    """The task that reads."""
    reader = EpochDataSource.of(job_in(root).to_bytes(), "readings", 0)({}).streamReader(ROW_SCHEMA)
    [part] = reader.partitions({"entry": 0}, reader.latestOffset({"entry": 0}, None))  # type: ignore[arg-type]
    batches = reader.read(part)
    rows = (tuple(row.values()) for batch in batches for row in batch.to_pylist())
    return store(root / "read", rows)


def operator(root: Path) -> int:
    """The stateful operator, at work on the one bucket that has rows."""
    level = Level(job_in(root).to_bytes(), 0)
    level.init(_Handle())  # type: ignore[arg-type]
    label = next(stored(root / "read"))[0]
    given = (Row(**dict(zip(ROW_SCHEMA.names, row, strict=True))) for row in stored(root / "read"))
    return store(root / "operator", map(tuple, level.handleInputRows((label,), given, None)))


def write(root: Path) -> int:
    """The writer."""
    job = job_in(root)
    job.sinks["means"].claim(job.claim_of("means"))
    writing = SinksWriter.of(dump_job(job))({}).streamWriter(ROW_SCHEMA, False)
    writer.epoch_of_task = lambda: 0
    before = memory()
    writing.write(_Batch(row) for row in stored(root / "operator"))  # type: ignore[arg-type]
    return before


class _Batch:
    def __init__(self, row: tuple[Any, ...]) -> None:
        self._row = row

    def to_pylist(self) -> list[dict[str, Any]]:
        return [dict(zip(ROW_SCHEMA.names, self._row, strict=True))]


def main() -> None:
    """Run every stage in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--stage", choices=STAGES)
    parser.add_argument("--root", type=Path)
    given = parser.parse_args()
    if given.stage:
        before = globals()[given.stage](given.root)
        print(json.dumps({"before": before, "after": memory()}))
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "in").mkdir()
        size = 0
        with (root / "in" / "a.jsonl").open("w") as file:
            for number in range(given.rows):
                size += file.write(f'{{"sensor":"hot","value":{number % 1000}.5}}\n')
        print(f"{given.rows} rows of one key, {size / given.rows:.0f} bytes of JSON each")
        for stage in STAGES:
            command = [sys.executable, __file__, "--stage", stage, "--root", folder]
            found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            grown = found["after"] - found["before"]
            beyond = grown / given.rows - size / given.rows
            print(
                f"{stage:9} {grown >> 20:6} MiB grown, {beyond:6.0f} bytes a row beyond the record"
            )


if __name__ == "__main__":
    main()
