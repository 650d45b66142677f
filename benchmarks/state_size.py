"""Does the cost of an epoch follow the change, or the size of the state?

    python benchmarks/state_size.py [--keys 50000 5000000] [--touched 1000] [--epochs 200]

Two checkpoints of the same flow, one with few keys and one with many. Each repetition restarts
both, one after the other, and runs epochs that touch 1,000 random keys each; so every repetition
begins with cold reads, and compactions come as they come. Workers are started on another checkpoint
before, so that their start is no part of it. An epoch's time is what the run reports. See README.md
in this folder.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from counting import scalar_flow
from feeding import PARTITIONS, import_by_name, new_files, read_lines, write_readings
from harness import Bench, Goal, Side
from pyspark.sql import SparkSession

from cutwater.spark import json_lines, run
from cutwater.spark.embedded.session import embedded_session

PRELOAD_FILE = 250_000
"""Keys in one file of the preload."""


@dataclass
class Checkpoint:
    """A flow with so many keys in its state."""

    folder: Path
    keys: int
    touched: int
    """Keys that an epoch touches."""
    epochs: int
    """In a repetition."""
    rows: int = 0
    files: int = 0
    times: list[float] = field(default_factory=list)
    """Of all epochs that were measured, in milliseconds."""

    def __post_init__(self) -> None:
        self._rng = random.Random(self.keys)
        self._source = self.folder / "in"
        self._touches: dict[int, int] = {}

    @property
    def name(self) -> str:
        """To read."""
        return f"{self.keys:,} keys in state"

    def preload(self) -> None:
        """Give every key a state."""
        for first in range(0, self.keys, PRELOAD_FILE):
            self._write(range(first, min(first + PRELOAD_FILE, self.keys)))
        self._run(32 << 20, is_measured=False)

    def once(self) -> dict[str, float]:
        """Restart, run epochs, check what came out; the middle and the slow end of their times."""
        for _ in range(self.epochs):
            keys = self._rng.sample(range(self.keys), self.touched)
            for key in keys:
                self._touches[key] = self._touches.get(key, 0) + 1
            size = self._write(keys)
        seen: set[str] = set()
        list(new_files(self.folder / "out", seen))
        times = self._run(size)
        assert len(times) == self.epochs, f"{len(times)} epochs instead of {self.epochs}"
        self._check(seen)
        self.times += times
        return quantiles(times)

    def _check(self, seen: set[str]) -> None:
        found = read_lines(new_files(self.folder / "out", seen))
        newest: dict[int, int] = {}
        for record in found:
            key = int(record["key"].removeprefix("user-"))
            newest[key] = max(newest.get(key, 0), record["count"])
        is_right = all(count == 1 + self._touches[key] for key, count in newest.items())
        if len(found) != self.epochs * self.touched or not is_right:
            sys.exit(f"{self.name}: the counts are wrong")

    def _write(self, keys: list[int] | range) -> int:
        path = self._source / f"{self.files:06}.jsonl"
        write_readings(path, self.rows, keys)
        self.rows += len(keys)
        self.files += 1
        return path.stat().st_size

    def _run(self, max_bytes: int, *, is_measured: bool = True) -> list[float]:
        """A run in a session of its own: nothing stays in any worker from the one before."""
        times: list[float] = []
        spark = embedded_session(self.folder / "scratch", partitions=PARTITIONS)
        try:
            if is_measured:
                self._warm_up(spark)
            run(
                scalar_flow(),
                spark,
                sources={"readings": json_lines(str(self._source), max_bytes)},
                sinks={"counts": self.folder / "out"},
                checkpoint=self.folder / "checkpoint",
                on_progress=lambda progress: times.append(float(progress.duration_ms)),
            )
        finally:
            spark.stop()
        return times

    def _warm_up(self, spark: SparkSession) -> None:
        """Start workers and imports on another checkpoint; the state stays cold."""
        other = self.folder / "warm-up"
        write_readings(other / "in" / f"{time.monotonic_ns()}.jsonl", 0, range(100))
        run(
            scalar_flow(),
            spark,
            sources={"readings": other / "in"},
            sinks={"counts": other / "out"},
            checkpoint=other / "checkpoint",
        )


def quantiles(times: list[float]) -> dict[str, float]:
    """The middle, and the time that one in twenty exceeds."""
    slow_end = statistics.quantiles(times, n=20, method="inclusive")[-1]
    return {"p50 ms": statistics.median(times), "p95 ms": slow_end}


def main() -> int:
    """Preload both, then measure in turns."""
    bench = Bench("state_size", __doc__ or "", quick_repetitions=3)
    add = bench.parser.add_argument
    add("--keys", type=int, nargs=2, help="5,000 and 50,000 if quick, else 50,000 and 5,000,000")
    add("--touched", type=int, default=1_000, help="keys in each epoch")
    add("--epochs", type=int, help="in each repetition: 10 if quick, else 200")
    given = bench.arguments()
    sizes = given.keys or ([5_000, 50_000] if bench.is_quick else [50_000, 5_000_000])
    epochs = given.epochs or (10 if bench.is_quick else 200)
    import_by_name()
    with tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as folder:
        sides = [Checkpoint(Path(folder) / str(n), n, given.touched, epochs) for n in sizes]
        for side in sides:
            bench.tell(f"preloading {side.name}")
            side.preload()
        few, many = (side.name for side in sides)
        wanted = f"{given.touched:,} keys touched per epoch"
        bench.compare(
            f"{given.touched:,} keys per epoch, {epochs} epochs after a restart",
            [Side(side.name, side.once) for side in sides],
            base=few,
            goals=[
                Goal(many, few, figure, at_most=1.3, condition=wanted)
                for figure in ("p50 ms", "p95 ms")
            ],
        )
        for side in sides:
            found = quantiles(side.times)
            shown = ", ".join(f"{name.split()[0]} {ms:,.0f} ms" for name, ms in found.items())
            bench.say(f"{side.name}: {shown} over all {len(side.times)} epochs")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
