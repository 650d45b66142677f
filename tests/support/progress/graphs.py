"""Random graphs of locations with loops, random runs on them, and their frontiers from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st
from support.operators.orders import closure

from cutwater.progress import EGRESS, FEEDBACK, IDENTITY, INGRESS, Edge, Graph, Summary, add
from cutwater.times import Antichain, in_rounds

DIAMOND = closure(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
"""Four times, of which two are incomparable."""


@dataclass(frozen=True)
class Drawn:
    graph: Graph
    times: tuple[Any, ...]
    """Times outside of loops."""


def drawn_graph(random: Random, *, with_amounts: bool, back: int, most: int = 6) -> Graph:
    """A graph of two or more nodes in up to two loops, with so many edges that lead back."""
    nodes = [f"n{i}" for i in range(random.randint(2, most))]
    choices = random.choice([[0, 0, 1, 1, 2], [0], [1], [2]])  # uneven depths lose rounds in cycles
    depths = [random.choice(choices) for _ in nodes]
    pairs = [(i, j) for j in range(len(nodes)) for i in range(j)]
    forward = [pair for pair in pairs if random.random() < 0.5] or pairs[:1]
    backward = [(j, i) for i, j in random.choices(pairs, k=back)]
    edges = [
        Edge(
            f"e{number}",
            nodes[i],
            nodes[j],
            tuple(
                drawn_summary(random, depths[i], depths[j], with_amounts, i > j)
                for _ in range(random.choice([1, 1, 2]))
            ),
        )
        for number, (i, j) in enumerate([*forward, *backward])
    ]
    return Graph([Edge("in", None, nodes[0]), *edges, Edge("out", nodes[-1], None)])


def drawn_summary(
    random: Random, source: int, target: int, with_amounts: bool, is_back: bool
) -> Summary:
    summary = IDENTITY
    for _ in range(source - target):
        summary = summary.then(EGRESS)
    if min(source, target) and random.random() < (0.9 if is_back else 0.2):
        summary = summary.then(FEEDBACK)
    for _ in range(target - source):
        summary = summary.then(INGRESS)
    if with_amounts and random.random() < (0.7 if is_back else 0.3):
        summary = summary.then(add(random.choice([1, 1, 2, 2, 2, -1])))
    return summary


def graphs(back: int = 2) -> st.SearchStrategy[Drawn]:
    def build(seed: int, with_amounts: bool) -> Drawn:
        random = Random(seed)
        graph = drawn_graph(
            random, with_amounts=with_amounts, back=random.randint(0, back) if back else 0
        )
        return Drawn(graph, tuple(range(4)) if with_amounts else tuple(DIAMOND))

    return st.builds(build, st.integers(0, 2**32), st.booleans())


def run_on(drawn: Drawn, seed: int, length: int) -> Iterator[tuple[str, Any, int]]:
    """Changes that never count below none."""
    random, live = Random(seed), Counter[tuple[str, Any]]()
    for _ in range(length):
        if live and random.random() < 0.55:
            location, time = random.choice(list(live))
            change = -random.randint(1, live[location, time])
        else:
            location = random.choice(drawn.graph.locations)
            depth = drawn.graph.depth[location]
            rounds = tuple(random.randint(0, 2) for _ in range(depth))
            time, change = in_rounds(random.choice(drawn.times), rounds), random.randint(1, 2)
        live[location, time] += change
        live += Counter()
        yield location, time, change


def paths(graph: Graph, start: str, end: str) -> Iterator[Summary]:
    """The summaries of all simple paths, by walking them one by one; cycles where both are one."""

    def walk(path: tuple[str, ...], summary: Summary) -> Iterator[Summary]:
        for place, summaries in graph.arcs[path[-1]]:
            for further in map(summary.then, summaries):
                if place == end:
                    yield further
                elif place not in path:
                    yield from walk((*path, place), further)

    if start == end:
        yield IDENTITY
    yield from walk((start,), IDENTITY)


def clock(graph: Graph, live: dict[tuple[str, Any], int]) -> dict[str, Antichain]:
    """The frontier of every location from scratch."""
    return {
        y: Antichain(s(t) for (x, t), count in live.items() if count for s in paths(graph, x, y))
        for y in graph.locations
    }


def is_every_cycle_positive(graph: Graph) -> bool:
    cycles = (cycle for x in graph.locations for cycle in list(paths(graph, x, x))[1:])
    return all(cycle.is_strictly_positive for cycle in cycles)
