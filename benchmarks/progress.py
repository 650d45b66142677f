"""How many updates of progress a second, and whether an update gets slower after a million of them.

    python benchmarks/progress.py [--updates 1000000]

The graph has 20 nodes: a pipeline of ten, then a loop of six with ingress, feedback and egress, and
a pipeline behind it. Records travel in batches through all of it and turn in the loop three times;
`Progress` is told of every message that is sent and received, and asked for the frontier of the
output after each step of a node. The number of batches under way stays the same. Seconds are those
of the processor, so that what else the machine does counts little.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from cutwater.progress import EGRESS, FEEDBACK, INGRESS, Edge, Graph, Progress
from cutwater.times import rounds_of

BEFORE, INSIDE, BEHIND = 9, 6, 3
"""Nodes before the loop, in it, and behind it; and two that enter and leave it."""
TURNS = 3
WANTED = 100_000
"""Updates a second."""
WINDOW = 100_000
"""Updates in a row that are timed together."""

Change = tuple[str, Any, int]


def graph() -> Graph:
    """Twenty nodes with a loop."""
    chain = [f"before {i}" for i in range(BEFORE)]
    loop = [f"inside {i}" for i in range(INSIDE - 1)]
    behind = [f"behind {i}" for i in range(BEHIND)]
    edges = [Edge("in", None, chain[0])]
    edges += _chained([*chain, "enter"])
    edges += [Edge("first", "enter", loop[0], (INGRESS,)), *_chained(loop)]
    edges += [Edge("again", loop[-1], "feedback"), Edge("next", "feedback", loop[0], (FEEDBACK,))]
    edges += [Edge("done", loop[-1], "leave"), Edge("left", "leave", behind[0], (EGRESS,))]
    edges += [*_chained(behind), Edge("out", behind[-1], None)]
    return Graph(edges)


def _chained(nodes: list[str]) -> list[Edge]:
    return [Edge(f"{a} → {b}", a, b) for a, b in itertools.pairwise(nodes)]


def steps(graph: Graph, batches: int, messages: int) -> Iterator[list[Change]]:
    """Steps for ever: each takes the messages of a batch from an edge and sends as many on.

    So many batches, each of so many messages and one of a time of its own, are under way at once.
    """
    readers = {edge.name: edge.target for edge in graph.edges}
    sent = {node: [edge for edge in graph.edges if edge.source == node] for node in graph.nodes}
    queue = deque(("in", t) for t in range(batches))
    for t in range(batches):
        yield [("in", t, 1)] * messages
    newest = batches - 1
    while True:
        edge, t = queue.popleft()
        changes: list[Change] = []
        node = readers[edge]
        if node is None:
            newest += 1
            changes += [("in", newest, 1)] * messages
            queue.append(("in", newest))
        else:
            target = _chosen(sent[node], t)
            there = target.summaries[0](t)
            changes += [(target.name, there, 1)] * messages
            queue.append((target.name, there))
        yield changes + [(edge, t, -1)] * messages


def _chosen(edges: list[Edge], t: Any) -> Edge:
    """Round the loop, and out of it after some turns."""
    if len(edges) == 1:
        return edges[0]
    is_done = rounds_of(t)[-1] >= TURNS
    return next(edge for edge in edges if (edge.name == "done") == is_done)


def windows(updates: int, batches: int, messages: int) -> list[float]:
    """Seconds for each window of updates in a row, without the time it takes to make them up."""
    tracked = graph()
    progress = Progress(tracked)
    source = steps(tracked, batches, messages)
    found = []
    for _ in range(updates // WINDOW):
        made: list[list[Change]] = []
        while len(made) * 2 * messages < WINDOW:
            made.append(next(source))
        start = time.process_time()
        for changes in made:
            for change in changes:
                progress.update(*change)
            progress.frontier("out")
        found.append((time.process_time() - start) * WINDOW / sum(map(len, made)))
    if sum(count for *_, count in progress.live()) != batches * messages:
        sys.exit("the live set is not what was put in")
    return found


def main() -> None:
    """Print updates a second, and the first windows beside the last ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true", help="print the figures as data")
    arguments = parser.parse_args()
    results = []
    for batches, messages in ((10, 1), (10, 10), (10, 100), (100, 10)):
        seconds = windows(arguments.updates, batches, messages)
        third = max(1, len(seconds) // 3)
        first, last = statistics.median(seconds[:third]), statistics.median(seconds[-third:])
        results.append(
            {
                "batches": batches,
                "messages": messages,
                "updates_per_s": WINDOW / statistics.median(seconds),
                "last_to_first": last / first,
            }
        )
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    for r in results:
        verdict = "met" if r["updates_per_s"] >= WANTED else "NOT met"
        print(
            f"{r['batches']:>4} batches of {r['messages']:>3} messages: "
            f"{r['updates_per_s']:>9,.0f} updates/s (wanted {WANTED:,}: {verdict}); "
            f"last third of {arguments.updates:,} / first third: {r['last_to_first']:.2f}x"
        )


if __name__ == "__main__":
    main()
