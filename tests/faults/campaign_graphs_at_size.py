"""The examples of loops as a user runs them, on graphs of their size, against networkx."""

import json
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "graphs.py"
EDGES, NODES, START = 100_000, 60_000, 0

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def write(folder, edges):
    """Most of the edges in one file, the rest in three; the bytes that an epoch may have."""
    folder.mkdir(parents=True)
    cuts = [0, len(edges) - 3_000, len(edges) - 2_000, len(edges) - 1_000, len(edges)]
    for number, (start, end) in enumerate(pairwise(cuts)):
        lines = (json.dumps(edge) + "\n" for edge in edges[start:end])
        (folder / f"{number}.jsonl").write_text("".join(lines))
    return (folder / "0.jsonl").stat().st_size


def run(root, flow, sink, edges):
    """What the sink shows, epoch by epoch."""
    size = write(root / "edges", edges)
    command = ["run", f"{EXAMPLE}:{flow}", "--json", "--max-bytes-per-epoch", str(size)]
    command += ["--source", f"edges={root / 'edges'}", "--sink", f"{sink}={root / 'out'}"]
    command += ["--checkpoint", str(root / "checkpoint")]
    main = "from cutwater.cli import main; main()"
    subprocess.run([sys.executable, "-c", main, *command], check=True, capture_output=True)
    epochs = sorted((root / "out").glob("epoch=*"), key=lambda path: int(path.name[6:]))
    assert len(epochs) >= 2
    for epoch in epochs:
        for part in sorted(epoch.glob("part-*")):
            yield from map(json.loads, part.read_text().splitlines())


def newest(rows):
    """The last value that was shown of each node; values only ever become smaller."""
    found = {}
    for row in rows:
        assert row["value"] < found.get(row["node"], row["value"] + 1)
        found[row["node"]] = row["value"]
    return found


def drawn():
    rng = random.Random(5)
    return [
        {"a": rng.randrange(NODES), "b": rng.randrange(NODES), "length": rng.randrange(1, 9)}
        for _ in range(EDGES)
    ]


def test_components_of_a_hundred_thousand_edges(tmp_path):
    edges = drawn()
    graph = nx.Graph((edge["a"], edge["b"]) for edge in edges)
    parts = ((min(part), part) for part in nx.connected_components(graph))
    wanted = {node: least for least, part in parts for node in part}
    assert newest(run(tmp_path, "components", "components", edges)) == wanted


def test_distances_over_a_hundred_thousand_edges(tmp_path):
    edges = drawn()
    graph = nx.MultiDiGraph()
    graph.add_weighted_edges_from((edge["a"], edge["b"], edge["length"]) for edge in edges)
    wanted = nx.single_source_dijkstra_path_length(graph, START)
    assert len(wanted) > NODES / 2
    assert newest(run(tmp_path, "distances", "distances", edges)) == wanted


def permission_graph():
    """Users are in groups, which have roles, which allow actions; numbers tell them apart."""
    rng = random.Random(7)
    users, groups, roles, actions = (
        range(20_000),
        range(100_000, 100_200),
        range(200_000, 200_050),
        range(300_000, 300_500),
    )
    edges = [(role, action) for role in roles for action in rng.sample(actions, 25)]
    edges += [(group, role) for group in groups for role in rng.sample(roles, 2)]
    edges += [(user, rng.choice(groups)) for user in users]
    return [{"a": a, "b": b} for a, b in edges]


def test_a_closure_of_a_million_pairs(tmp_path):
    edges = permission_graph()
    graph = nx.DiGraph((edge["a"], edge["b"]) for edge in edges)
    rows = [(row["a"], row["b"]) for row in run(tmp_path, "permissions", "pairs", edges)]
    assert len(rows) == len(set(rows)) > 900_000
    assert set(rows) == {(a, b) for a in graph for b in nx.descendants(graph, a)}
