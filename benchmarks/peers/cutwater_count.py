"""Cutwater: the same count, from the same CSV files, as a scalar task or as a built-in aggregate.

    python cutwater_count.py FOLDER [--kind scalar|built-in] [--cores 2]

Twenty files are an epoch, which are two million rows; outputs go to a sink that drops them, state
to a checkpoint after every epoch. Ticks are the ends of epochs: see `steady` for what is timed. The
counts are verified in a run on two files before, which go to a folder, in many small epochs: a JVM
is twice as fast after some of them.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from steady import arguments, report

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from counting import built_in_count_flow, scalar_count_flow, vectorised_count_flow  # noqa: E402
from dropping import Dropping  # noqa: E402
from feeding import import_by_name  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

from cutwater.spark import csv, run  # noqa: E402
from cutwater.spark.embedded.session import embedded_session  # noqa: E402

FILES_PER_EPOCH = 20
WARM_UP_EPOCHS = 30

FLOWS = {
    "scalar": scalar_count_flow,
    "vectorised": vectorised_count_flow,
    "built-in": built_in_count_flow,
}


@dataclass
class Counting:
    """A flow of one kind, on files of readings."""

    spark: SparkSession
    kind: str
    files: list[Path]
    scratch: Path

    def is_right(self, keys: int) -> bool:
        """Do two files give every key the counts 1 and 2, or 2 at last if it emits by epoch?"""
        few, out = self.scratch / "few", self.scratch / "out"
        few.mkdir()
        for path in self.files[:2]:
            (few / path.name).symlink_to(path.absolute())
        size = sum(path.stat().st_size for path in self.files[:2])
        run(
            FLOWS[self.kind](),
            self.spark,
            sources={"readings": csv(str(few), max_bytes_per_epoch=size // WARM_UP_EPOCHS)},
            sinks={"counts": out},
            checkpoint=self.scratch / "verify",
        )
        lines = [line for path in out.glob("epoch=*/*.jsonl") for line in path.open()]
        found = [json.loads(line) for line in lines]
        if self.kind == "built-in":
            last = {record["key"]: 0 for record in found}
            for record in found:
                last[record["key"]] = max(last[record["key"]], record["count"])
            return len(last) == keys and set(last.values()) == {2}
        per_count = Counter(record["count"] for record in found)
        return len({r["key"] for r in found}) == keys and per_count == {1: keys, 2: keys}

    def ticks(self, keys: int) -> list[tuple[float, int]]:
        """When each epoch was finished, and how many rows it had."""
        sizes = [path.stat().st_size for path in self.files[:FILES_PER_EPOCH]]
        ends: list[float] = []
        run(
            FLOWS[self.kind](),
            self.spark,
            sources={"readings": csv(str(self.files[0].parent), max_bytes_per_epoch=sum(sizes))},
            sinks={"counts": Dropping()},
            checkpoint=self.scratch / "checkpoint",
            on_progress=lambda _progress: ends.append(time.monotonic()),
        )
        left = len(self.files)
        found = []
        for end in ends:
            files = min(FILES_PER_EPOCH, left)
            found.append((end, files * keys))
            left -= files
        assert not left, f"{left} files were not read in {len(ends)} epochs"
        return found


def main() -> None:
    """Verify, then measure."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--kind", choices=list(FLOWS), default="scalar")
    parser.add_argument("--cores", type=int, default=2)
    given = parser.parse_args()
    import_by_name()
    with tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as folder:
        scratch = Path(folder)
        master = f"local[{given.cores}]"
        spark = embedded_session(scratch / "spark", master=master, partitions=given.cores)
        files = sorted((given.folder / "csv").glob("*.csv"))
        counting = Counting(spark, given.kind, files, scratch)
        right = counting.is_right(given.keys)
        ticks = counting.ticks(given.keys)
        report(ticks, is_right=right, how=f"{given.kind}, epochs of {FILES_PER_EPOCH} files")
        spark.stop()


if __name__ == "__main__":
    main()
