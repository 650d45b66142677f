"""Recovery: how long from a restart to the first new output, with many keys in state.

    python benchmarks/recovery.py [--keys 1000000]

Each side is loaded once and its process ends. A repetition puts a file with 100 readings of known
keys into the side's folder, starts a new process, and waits until their outputs are visible in the
output folder: that is the time, from the start of the process on, with Python, Java and Spark.
A second figure counts from the moment when the session is there. See README.md in this folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from counting import READINGS, row_groups, scalar_flow
from feeding import PARTITIONS, import_by_name, new_files, read_lines, write_readings
from harness import Bench, Side

from cutwater.spark import run
from cutwater.spark.embedded.session import embedded_session

FILE = 100_000
"""Keys in a file of the load."""
TOUCHED = 100
PATIENCE_SECONDS = 3600


# --- in the process that is started ----------------------------------------------------------


def cutwater(folder: Path) -> None:
    """The flow, until all is read."""
    spark = embedded_session(folder / "scratch", partitions=PARTITIONS)
    (folder / "started").write_text(str(time.monotonic()))
    run(
        scalar_flow(),
        spark,
        sources={"readings": folder / "in"},
        sinks={"counts": folder / "out"},
        checkpoint=folder / "checkpoint",
    )


def plain(folder: Path) -> None:
    """`transformWithState` with one group for each key, and Spark's own file source and sink."""
    spark = embedded_session(folder / "scratch", partitions=PARTITIONS)
    (folder / "started").write_text(str(time.monotonic()))
    readings = spark.readStream.schema(READINGS).json(str(folder / "in"))
    writer = row_groups(readings).writeStream.format("json").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()


SIDES: dict[str, Callable[[Path], None]] = {
    "transformWithState": plain,
    "Cutwater, scalar task": cutwater,
}


# --- in the process that measures ------------------------------------------------------------


@dataclass
class Restarted:
    """One side with its folder."""

    name: str
    folder: Path
    keys: int
    restarts: int = 0

    def load(self) -> None:
        """Give every key a state."""
        for first in range(0, self.keys, FILE):
            path = self.folder / "in" / f"load-{first:09}.json"
            write_readings(path, first, range(first, min(first + FILE, self.keys)))
        self._wait(self._start())

    def once(self) -> dict[str, float]:
        """Restart, and wait for the outputs of what came meanwhile."""
        seen: set[str] = set()
        list(new_files(self.folder / "out", seen))
        touched = range(0, self.keys, max(1, self.keys // TOUCHED))[:TOUCHED]
        first = self.keys + self.restarts * TOUCHED
        write_readings(self.folder / "in" / f"more-{self.restarts:09}.json", first, touched)
        self.restarts += 1
        start = time.monotonic()
        process = self._start()
        paths: list[Path] = []
        while sum(path.stat().st_size for path in paths) == 0:
            time.sleep(0.005)
            if process.poll() is not None:
                break
            paths += new_files(self.folder / "out", seen)
        visible = time.monotonic()
        self._wait(process)
        paths += new_files(self.folder / "out", seen)
        counts = [record["count"] for record in read_lines(paths)]
        if counts != [self.restarts + 1] * len(touched):
            sys.exit(f"{self.name} computes something else: {counts[:5]} ...")
        started = float((self.folder / "started").read_text())
        return {"s from process start": visible - start, "s from session": visible - started}

    def _start(self) -> subprocess.Popen[bytes]:
        given = [__file__, "--child", self.name, str(self.folder)]
        return subprocess.Popen([sys.executable, *given], stderr=subprocess.DEVNULL)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        if process.wait(PATIENCE_SECONDS) != 0:
            sys.exit(f"{self.name} failed: see {self.folder / 'scratch'}")


def main() -> int:
    """Load both sides, then restart them in turns."""
    import_by_name()
    if sys.argv[1:2] == ["--child"]:
        name, folder = sys.argv[2:]
        SIDES[name](Path(folder))
        sys.stdout.flush()
        os._exit(0)  # what Spark does at its end is not measured
    bench = Bench("recovery", __doc__ or "", quick_repetitions=3)
    bench.parser.add_argument("--keys", type=int, help="10,000 if quick, else 1,000,000")
    given = bench.arguments()
    keys = given.keys or (10_000 if bench.is_quick else 1_000_000)
    with tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as scratch:
        sides = [Restarted(name, Path(scratch) / f"{n}", keys) for n, name in enumerate(SIDES)]
        for side in sides:
            bench.tell(f"loading {keys:,} keys: {side.name}")
            side.load()
        bench.compare(
            f"{keys:,} keys in state",
            [Side(side.name, side.once) for side in sides],
            base=next(iter(SIDES)),
        )
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
