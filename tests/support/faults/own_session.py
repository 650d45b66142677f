"""A run that hangs on a session of the user's, which is used after it: ``own_session.py DIR``."""

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

import cutwater as cw
from cutwater.errors import RunError
from cutwater.spark import run
from cutwater.spark.embedded.java import java_home
from cutwater.spark.embedded.session import _SETTINGS


@dataclass(frozen=True)
class Item:
    """What comes in and goes out."""

    key: str


@cw.task(initial=0)
def hang(seen: int, item: Item) -> tuple[int, list[Item]]:
    """Never return."""
    time.sleep(10_000)
    return seen, [item]


def main(folder: Path) -> None:
    """Run, and use the session once more."""
    (folder / "in").mkdir()
    (folder / "in" / "1.jsonl").write_text(json.dumps({"key": "a"}) + "\n")
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    flow = cw.Flow("hanging")
    flow.sink("out", flow.source("items", Item).key_by("key").apply(hang))
    try:
        run(
            flow,
            session,
            sources={"items": folder / "in"},
            sinks={"out": folder / "out"},
            checkpoint=folder / "state",
            hung_after=20,
        )
    except RunError as error:
        print(error)
    print("the session answers:", session.range(3).count())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
