"""The examples of loops, against algorithms that share nothing with them."""

import random
import sys
from pathlib import Path

import networkx as nx
import pytest

import cutwater as cw

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
import graphs


def epochs_of(seed, count=3, size=30, nodes=45):
    rng = random.Random(seed)
    edges = [
        graphs.Edge(rng.randrange(nodes), rng.randrange(nodes), rng.randrange(1, 9))
        for _ in range(count * size)
    ]
    edges[0] = graphs.Edge(graphs.START, 7, 3)
    return [edges[n : n + size] for n in range(0, len(edges), size)]


def shown(flow, sink, epochs):
    """What the sink has shown up to the end of each epoch."""
    edges = [item for epoch in epochs for item in (*epoch, cw.BARRIER)]
    by_epoch = cw.simulate(flow, {"edges": edges}).by_epoch(sink)
    return [
        [row for rows in by_epoch[: number + 1] for row in rows] for number in range(len(epochs))
    ]


def graphs_of(epochs, kind):
    """The graph up to the end of each epoch."""
    graph = kind()
    for epoch in epochs:
        graph.add_weighted_edges_from((edge.a, edge.b, edge.length) for edge in epoch)
        yield graph.copy()


@pytest.mark.parametrize("seed", range(5))
def test_components_are_those_of_networkx_after_each_epoch(seed):
    epochs = epochs_of(seed)
    seen = shown(graphs.components, "components", epochs)
    for rows, graph in zip(seen, graphs_of(epochs, nx.Graph), strict=True):
        found = {row.node: row.value for row in rows}
        assert found == {n: min(part) for part in nx.connected_components(graph) for n in part}


@pytest.mark.parametrize("seed", range(5))
def test_distances_are_those_of_networkx_after_each_epoch(seed):
    epochs = epochs_of(seed)
    seen = shown(graphs.distances, "distances", epochs)
    for rows, graph in zip(seen, graphs_of(epochs, nx.MultiDiGraph), strict=True):
        wanted = nx.single_source_dijkstra_path_length(graph, graphs.START)
        assert {row.node: row.value for row in rows} == wanted
        assert len(wanted) > 1


@pytest.mark.parametrize("seed", range(3))
def test_permissions_are_the_transitive_closure_of_networkx_after_each_epoch(seed):
    epochs = epochs_of(seed, size=20)
    seen = shown(graphs.permissions, "pairs", epochs)
    for rows, graph in zip(seen, graphs_of(epochs, nx.DiGraph), strict=True):
        pairs = [(row.a, row.b) for row in rows]
        assert len(pairs) == len(set(pairs))
        assert set(pairs) == set(nx.transitive_closure(graph).edges())
