"""An epoch of 1,000 new edges in a graph whose components are kept up to date.

    python benchmarks/loops.py [--edges 10000 100000] [--new 1000] [--epochs 5]

Beside one another in one session: the loop of examples/graphs.py, which works on what the new edges
change; the same loop by a log, a round an epoch in all buckets; a Spark batch job that computes all
components from scratch, label by label, with joins; the connected components of GraphX, also from
scratch; and those of GraphFrames, by both of its algorithms, in a Spark of its own (``scripts/peers
graphframes`` makes its environment; without it these sides are left out). All begin with the same
edges and are given the same new ones, and all are compared with networkx. See README.md in this
folder.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import networkx as nx
from feeding import PARTITIONS, import_by_name, new_files, read_lines
from harness import Bench, Goal, Side
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import cutwater as cw
from cutwater.spark import json_lines, run
from cutwater.spark.embedded.session import embedded_session

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import graphs

Edges = list[tuple[int, int]]
NODES_PER_EDGE = 0.6


@dataclass
class Graph:
    """Edges in a folder, and those that each side has been given."""

    folder: Path
    size: int
    edges: Edges = field(default_factory=list)
    files: int = 0

    def __post_init__(self) -> None:
        self._rng = random.Random(self.size)
        self._nodes = int(self.size * NODES_PER_EDGE)

    def grow(self, count: int) -> int:
        """Add a file of random edges; how many bytes it has."""
        drawn = [
            (self._rng.randrange(self._nodes), self._rng.randrange(self._nodes))
            for _ in range(count)
        ]
        self.edges += drawn
        lines = "".join(f'{{"a": {a:7}, "b": {b:7}}}\n' for a, b in drawn)
        path = self.folder / "edges" / f"{self.files:05}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(f".{path.name}").write_text(lines)
        path.with_name(f".{path.name}").rename(path)
        self.files += 1
        return len(lines)

    def components(self) -> dict[int, int]:
        """The least node of each node's component, by networkx."""
        graph = nx.Graph(self.edges)
        parts = ((min(part), part) for part in nx.connected_components(graph))
        return {node: least for least, part in parts for node in part}


@dataclass
class Loop:
    """The flow, restarted in each repetition; each new file is an epoch."""

    spark: SparkSession
    graph: Graph
    new: int
    epochs: int
    flow: cw.Flow = graphs.components
    known: dict[int, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def preload(self) -> None:
        """Take the graph that is there before anything is measured."""
        self._run(self.graph.grow(self.graph.size))

    def once(self) -> dict[str, float]:
        """Some epochs; the middle of their times."""
        for _ in range(self.epochs):
            size = self.graph.grow(self.new)
        times = self._run(size)
        verify(f"the loop over {self.graph.size:,} edges", self.known, self.graph)
        if self.flow is not graphs.components:  # several epochs for one of the input
            return {"s": sum(times) / self.epochs}
        assert len(times) == self.epochs, f"{len(times)} epochs instead of {self.epochs}"
        return {"s": statistics.median(times)}

    def _run(self, max_bytes: int) -> list[float]:
        times: list[float] = []
        folder = self.graph.folder
        run(
            self.flow,
            self.spark,
            sources={"edges": json_lines(str(folder / "edges"), max_bytes)},
            sinks={"components": folder / "out"},
            checkpoint=folder / "checkpoint",
            on_progress=lambda progress: times.append(progress.duration_ms / 1000),
        )
        for row in read_lines(new_files(folder / "out", self.seen)):
            self.known[row["node"]] = min(row["value"], self.known.get(row["node"], row["value"]))
        return times


def components_by_log() -> cw.Flow:
    """The flow of the example with the other plan."""
    flow = cw.Flow("components")
    edges = flow.source("edges", graphs.Edge).flat_map(graphs.both_ways)
    body = graphs.spreading(graphs.component, "component")
    flow.sink("components", edges.iterate(body, plan="log", name="spread"))
    return flow


def labels_by_joins(spark: SparkSession, folder: Path) -> DataFrame:
    """The obvious batch job: everyone takes the least label around, until nobody changes."""
    edges = spark.read.schema("a long, b long").json(str(folder / "edges"))
    both = edges.union(edges.select("b", "a")).toDF("node", "other").distinct().cache()
    least = f.least("node", f.min("other")).alias("label")
    labels = both.groupBy("node").agg(least).localCheckpoint()
    while True:
        around = both.join(labels.toDF("other", "label"), "other").select("node", "label")
        better = around.union(labels).groupBy("node").agg(f.min("label").alias("label"))
        better = better.localCheckpoint()
        if better.agg(f.sum("label")).first() == labels.agg(f.sum("label")).first():
            both.unpersist()
            return better
        labels = better


def labels_by_graphx(spark: SparkSession, edges: Edges, folder: Path) -> list[str]:
    """GraphX, which GraphFrames calls too; there is no Python for it, so its classes are called."""
    path = folder / "edge-list"
    path.write_text("".join(f"{a} {b}\n" for a, b in edges))
    context = spark.sparkContext
    jvm, scala = context._jvm, context._jsc.sc()
    level = jvm.org.apache.spark.storage.StorageLevel.MEMORY_ONLY()
    loader = jvm.org.apache.spark.graphx.GraphLoader
    graph = loader.edgeListFile(scala, str(path), False, PARTITIONS, level, level)
    tag = jvm.scala.reflect.ClassTag.Int()
    found = jvm.org.apache.spark.graphx.lib.ConnectedComponents.run(graph, tag, tag)
    target = folder / f"graphx-{time.monotonic_ns()}"
    found.vertices().saveAsTextFile(str(target))
    graph.unpersist(False)
    return [line for part in target.glob("part-*") for line in part.read_text().splitlines()]


@dataclass
class FromScratch:
    """A side that computes all components again."""

    spark: SparkSession
    graph: Graph

    def by_joins(self) -> dict[str, float]:
        """Spark's own joins, written to Parquet."""
        start = time.monotonic()
        target = self.graph.folder / f"joins-{time.monotonic_ns()}"
        labels_by_joins(self.spark, self.graph.folder).write.parquet(str(target))
        taken = time.monotonic() - start
        rows = self.spark.read.parquet(str(target)).collect()
        verify("the batch job", {row.node: row.label for row in rows}, self.graph)
        return {"s": taken}

    def by_graphx(self) -> dict[str, float]:
        """GraphX, written as text."""
        start = time.monotonic()
        lines = labels_by_graphx(self.spark, self.graph.edges, self.graph.folder)
        taken = time.monotonic() - start
        pairs = (map(int, line[1:-1].split(",")) for line in lines)
        verify("GraphX", dict(pairs), self.graph)
        return {"s": taken}


PEERS = Path(__file__).parent / "peers"


@dataclass
class GraphFrames:
    """Its own environment, with a Spark session that stays; edges and result are folders."""

    graph: Graph
    algorithm: str
    _process: subprocess.Popen[str] | None = None

    @staticmethod
    def why_not() -> str | None:
        """A sentence, if there is no environment."""
        if (PEERS / ".venv-graphframes" / ".ready").exists():
            return None
        failed = PEERS / ".venv-graphframes.failed"
        said = failed.read_text().strip() if failed.exists() else "run scripts/peers graphframes"
        return f"GraphFrames is left out: its environment is not there ({said})."

    def start(self) -> None:
        """Start its Spark, which counts for nothing."""
        python = PEERS / ".venv-graphframes" / "bin" / "python"
        script = str(PEERS / "graphframes_components.py")
        self._process = subprocess.Popen(
            [str(python), script, self.algorithm, str(PARTITIONS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._answer()

    def once(self) -> dict[str, float]:
        """All components, written as JSON lines."""
        assert self._process is not None
        assert self._process.stdin is not None
        target = self.graph.folder / f"graphframes-{time.monotonic_ns()}"
        asked = {"edges": str(self.graph.folder / "edges"), "target": str(target)}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        taken = self._answer()["s"]
        rows = read_lines(sorted(target.glob("part-*")))
        found = {row["id"]: row["component"] for row in rows}
        verify(f"GraphFrames ({self.algorithm})", found, self.graph)
        return {"s": float(taken)}

    def stop(self) -> None:
        """End its process."""
        if self._process is not None:
            self._process.communicate()

    def _answer(self) -> dict[str, float]:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        sys.exit(f"GraphFrames ({self.algorithm}) ended with {self._process.wait()}")


def verify(name: str, found: dict[int, int], graph: Graph) -> None:
    """End the benchmark if a side computes something else."""
    if found != graph.components():
        sys.exit(f"{name} computes other components than networkx")


def graphframes_sides(bench: Bench, graph: Graph) -> list[GraphFrames]:
    """GraphFrames by both of its algorithms, started; says why if it is not there."""
    if why := GraphFrames.why_not():
        bench.say(why)
        return []
    sides = [GraphFrames(graph, algorithm) for algorithm in ("graphframes", "graphx")]
    for each in sides:
        bench.tell(f"starting GraphFrames ({each.algorithm})")
        each.start()
    return sides


def main() -> int:
    """Load the graphs, then measure in turns."""
    bench = Bench("loops", __doc__ or "", quick_repetitions=1)
    add = bench.parser.add_argument
    add("--edges", type=int, nargs=2, help="200 and 2,000 if quick, else 10,000 and 100,000")
    add("--new", type=int, help="edges in an epoch: 100 if quick, else 1,000")
    add("--epochs", type=int, help="in each repetition: 3 if quick, else 10")
    given = bench.arguments()
    sizes = given.edges or ([200, 2_000] if bench.is_quick else [10_000, 100_000])
    new = given.new or (100 if bench.is_quick else 1_000)
    epochs = given.epochs or (3 if bench.is_quick else 10)
    import_by_name()
    with tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as folder:
        spark = embedded_session(Path(folder) / "scratch", partitions=PARTITIONS)
        loops = [Loop(spark, Graph(Path(folder) / str(n), n), new, epochs) for n in sizes]
        by_log = Loop(
            spark, Graph(Path(folder) / "log", sizes[1]), new, epochs, components_by_log()
        )
        for each in [*loops, by_log]:
            bench.tell(f"loading {each.graph.size:,} edges")
            each.preload()
        few, many = (f"loop, {n:,} edges" for n in sizes)
        scratch = FromScratch(spark, loops[1].graph)
        joins, graphx = (
            f"{side}, from scratch, {sizes[1]:,} edges" for side in ("joins", "GraphX")
        )
        others = graphframes_sides(bench, loops[1].graph)
        bench.compare(
            f"an epoch of {new:,} new edges",
            [
                Side(few, loops[0].once),
                Side(many, loops[1].once),
                Side(f"loop by a log, {sizes[1]:,} edges", by_log.once),
                Side(joins, scratch.by_joins),
                Side(graphx, scratch.by_graphx),
                *(
                    Side(f"GraphFrames, {each.algorithm}, {sizes[1]:,} edges", each.once)
                    for each in others
                ),
            ],
            base=many,
            goals=[
                Goal(joins, many, "s", at_least=5, condition=f"{sizes[1]:,} edges"),
                Goal(many, few, "s", at_most=2, condition="ten times the graph"),
            ],
        )
        for each in others:
            each.stop()
        spark.stop()
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
