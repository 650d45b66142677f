"""Cutwater: the same count, from the same CSV files, as a scalar task or as a built-in aggregate.

    python cutwater_count.py FOLDER [--kind scalar|built-in] [--cores 2]

Spark reads the CSV files as a stream, eight for each epoch, which are 800,000 rows; outputs go to
its ``noop`` sink, state to a checkpoint after every epoch. Ticks are the ends of epochs, from the
query's progress: see `steady` for what is timed. The counts are verified in a run on two files
before.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from datetime import datetime
from pathlib import Path

from steady import arguments, report

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from counting import READINGS, built_in_count_flow, scalar_count_flow  # noqa: E402
from feeding import import_by_name  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402

from cutwater.spark import frame, transform  # noqa: E402
from cutwater.spark.session import embedded_session  # noqa: E402

FILES_PER_EPOCH = 8

FLOWS = {"scalar": scalar_count_flow, "built-in": built_in_count_flow}


def counted(spark: SparkSession, kind: str, folder: Path, checkpoint: Path) -> DataFrame:
    """What comes out of the flow."""
    reader = spark.readStream.schema(READINGS).option("header", "true")
    readings = reader.option("maxFilesPerTrigger", FILES_PER_EPOCH).csv(str(folder))
    source = frame(readings, order=["position"])
    return transform(FLOWS[kind](), {"readings": source}, checkpoint=checkpoint)


def is_right(spark: SparkSession, kind: str, folder: Path, scratch: Path, keys: int) -> bool:
    """Do two files give every key the counts 1 and 2, or the last of them if it emits once?"""
    few = scratch / "few"
    few.mkdir()
    for path in sorted(folder.glob("*.csv"))[:2]:
        (few / path.name).symlink_to(path.absolute())
    out = counted(spark, kind, few, scratch / "verify").select("key", "count")
    writer = out.writeStream.format("memory").queryName("verify").trigger(availableNow=True)
    writer.option("checkpointLocation", str(scratch / "verify")).start().awaitTermination()
    found = spark.table("verify").collect()
    per_count = Counter(row["count"] for row in found)
    wanted = {1: keys, 2: keys} if kind == "scalar" else {2: keys}
    return len({row["key"] for row in found}) == keys and per_count == wanted


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
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")
        files = given.folder / "csv"
        right = is_right(spark, given.kind, files, scratch, given.keys)
        out = counted(spark, given.kind, files, scratch / "checkpoint")
        writer = out.writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(scratch / "checkpoint")).start()
        query.awaitTermination()
        ticks = [
            (
                datetime.fromisoformat(progress.timestamp).timestamp()
                + progress.durationMs["triggerExecution"] / 1000,
                progress.numInputRows,
            )
            for progress in query.recentProgress
            if progress.numInputRows
        ]
        report(ticks, is_right=right, how=f"{given.kind}, epochs of {FILES_PER_EPOCH} files")
        spark.stop()


if __name__ == "__main__":
    main()
