"""What it costs an epoch to make Spark's checkpoint files durable, beside the epoch itself.

    python benchmarks/syncing.py [--epochs 40] [--json FILE]

One run over many small epochs; the planner notes how long each sync took. Printed are the median
and the 95th percentile of a sync, and its share of the median epoch of the same run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import cutwater as cw
import cutwater.spark
from cutwater.spark.checkpoint.power_loss import SparkFiles
from cutwater.spark.embedded.session import embedded_session

__all__: list[str] = []


@cw.task(initial=0)
def count(seen: int, number: int) -> tuple[int, list[int]]:
    """Count the numbers of a key."""
    return seen + 1, [seen + 1]


def flow() -> cw.Flow:
    """A flow with one keyed task."""
    made = cw.Flow("counts")
    numbers = made.source("numbers", int)
    made.sink("counts", numbers.key_by(lambda n: n % 100, name="by").apply(count))
    return made


def timings(folder: Path, epochs: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each sync and of each epoch."""
    source = folder / "in"
    source.mkdir()
    for number in range(epochs):
        lines = "".join(f"{n}\n" for n in range(number * 100, number * 100 + 100))
        (source / f"{number:05}.jsonl").write_text(lines)
    took: list[float] = []
    spark = embedded_session(folder / "scratch", master="local[2]")
    try:
        cutwater.spark.run(
            flow(),
            spark,
            sources={"numbers": cutwater.spark.json_lines(str(source), 380)},
            sinks={"counts": str(folder / "out")},
            checkpoint=folder / "checkpoint",
            on_progress=lambda progress: took.append(progress.duration_ms),
        )
    finally:
        spark.stop()
    return _syncs(folder / "checkpoint"), took[3:]


def _syncs(checkpoint: Path) -> list[float]:
    """Milliseconds to sync the files of one epoch, each written anew so that it is dirty."""
    found = []
    files = SparkFiles(checkpoint)
    files.sync()
    for _ in range(30):
        newest = max(int(p.name) for p in (checkpoint / "spark" / "offsets").glob("[0-9]*"))
        _next_epoch(checkpoint / "spark", newest)
        began = time.perf_counter()
        files.sync()
        found.append(1000 * (time.perf_counter() - began))
    return found


def _next_epoch(spark: Path, newest: int) -> None:
    """Write what Spark writes in an epoch, as copies of the files of the newest one."""
    for path in [*spark.rglob(f"{newest}"), *spark.rglob(f"{newest}_*.changelog*")]:
        copy = path.with_name(path.name.replace(str(newest), str(newest + 1), 1))
        copy.write_bytes(path.read_bytes())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        syncs, epochs = timings(Path(folder), asked.epochs)
    result = {
        "sync_ms_p50": statistics.median(syncs),
        "sync_ms_p95": statistics.quantiles(syncs, n=20)[18],
        "epoch_ms_p50": statistics.median(epochs),
    }
    result["share"] = result["sync_ms_p50"] / result["epoch_ms_p50"]
    for name, value in result.items():
        print(f"{name:14} {value:8.3f}")
    if asked.json:
        asked.json.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
