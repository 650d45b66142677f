"""A flow inside an ordinary PySpark job: readStream, the flow, writeStream.

``python examples/inside_a_job.py`` runs the job twice over files of orders, in a folder that is
removed after: the second run goes on where the first one ended. What it wrote is compared with the
simulation of the flow. It needs a Java runtime, as PySpark does.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cutwater as cw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Order:
    """An order of a user; the last one if the user leaves."""

    position: int
    user: str
    cents: int
    leaves: bool


@dataclass(frozen=True)
class Kept:
    """What is kept for each user."""

    count: int
    cents: int


@dataclass(frozen=True)
class Total:
    """What comes out after each order."""

    user: str
    count: int
    cents: int


@cw.task(initial=Kept(0, 0))
def totals(kept: Kept, order: Order) -> tuple[Kept | None, list[Total]]:
    """Number and sum of a user's orders; nothing is kept of one who leaves."""
    kept = Kept(kept.count + 1, kept.cents + order.cents)
    return None if order.leaves else kept, [Total(order.user, kept.count, kept.cents)]


flow = cw.Flow("totals")
flow.sink("totals", flow.source("orders", Order).key_by("user").apply(totals))

monday = [Order(1, "ada", 500, False), Order(2, "ben", 120, False), Order(3, "ben", 80, True)]
tuesday = [Order(4, "ben", 700, False), Order(5, "ada", 250, False)]
inputs = {"orders": [*monday, cw.BARRIER, *tuesday]}


def session() -> SparkSession:
    """An ordinary session, with the settings that a flow needs."""
    from pyspark.sql import SparkSession

    store = "spark.sql.streaming.stateStore"
    rocksdb = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    builder = SparkSession.builder.master("local[2]")
    builder = builder.config(f"{store}.providerClass", rocksdb)
    builder = builder.config(f"{store}.checkpointFormatVersion", 2)
    builder = builder.config("spark.sql.shuffle.partitions", 2)  # divides the 16 buckets
    return builder.config("spark.ui.enabled", "false").getOrCreate()


def job(spark: SparkSession, folder: Path) -> None:
    """Read what is new, and write what the flow makes of it."""
    from cutwater.spark import frame, transform

    schema = "position long, user string, cents long, leaves boolean"
    orders = spark.readStream.schema(schema).json(str(folder / "orders"))
    checkpoint = str(folder / "checkpoint")
    made: DataFrame = transform(
        flow, {"orders": frame(orders, order=["position"])}, checkpoint=checkpoint
    )
    query = (
        made.where("cents >= 100")  # a DataFrame like any other
        .writeStream.format("json")
        .option("path", str(folder / "totals"))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def add_orders(folder: Path, name: str, orders: Iterable[Order]) -> None:
    """Another file of orders; it appears whole."""
    (folder / "orders").mkdir(exist_ok=True)
    hidden = folder / "orders" / f".{name}"
    hidden.write_text("".join(json.dumps(asdict(order)) + "\n" for order in orders))
    hidden.rename(folder / "orders" / f"{name}.json")


def main() -> int:
    """Run the job on each day's orders; compare with the simulation."""
    spark = session()
    with tempfile.TemporaryDirectory(prefix="cutwater-job-") as scratch:
        folder = Path(scratch)
        for name, orders in ("monday", monday), ("tuesday", tuesday):
            add_orders(folder, name, orders)
            job(spark, folder)
        rows = spark.read.json(str(folder / "totals")).collect()
    spark.stop()
    written = sorted((row["user"], row["count"], row["cents"]) for row in rows)
    simulated = [(t.user, t.count, t.cents) for t in cw.simulate(flow, inputs)["totals"]]
    for user, count, cents in written:
        print(f"{user}, order {count}: {cents / 100:.2f} in all")
    is_same = written == sorted(total for total in simulated if total[2] >= 100)
    print("the same as the simulation" if is_same else f"the simulation has {simulated}")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
