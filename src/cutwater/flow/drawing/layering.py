"""The layer of each vertex of a graph, and its position within the layer.

Layers follow the longest path; an edge that spans several layers gets bends; sweeps over the means
of the neighbours find an order with few crossings (Sugiyama's method, kept small).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Layering", "layered"]

_SWEEPS = 12

_Link = tuple[int, int]
_Layers = list[list[int]]


@dataclass(frozen=True, slots=True)
class Layering:
    """An acyclic graph in layers."""

    layers: tuple[tuple[int, ...], ...]
    """The vertices of each layer, top to bottom; bends are numbered after the vertices."""
    paths: tuple[tuple[int, ...], ...]
    """For each edge: the vertex it leaves, its bends, and the vertex it enters."""

    @property
    def links(self) -> tuple[_Link, ...]:
        """All edges split into links, each from one layer to the next."""
        return tuple(link for path in self.paths for link in pairwise(path))


def layered(count: int, edges: Sequence[tuple[int, int]]) -> Layering:
    """Put vertices 0 to ``count - 1`` into layers; every edge leads from a smaller to a larger one.

    Examples
    --------
    >>> layered(4, [(0, 1), (0, 3), (1, 3), (2, 3)])
    Layering(layers=((0,), (1, 4, 2), (3,)), paths=((0, 1), (0, 4, 3), (1, 3), (2, 3)))
    """
    layer_of = _layers_by_longest_path(count, edges)
    layers: _Layers = [[] for _ in range(max(layer_of, default=-1) + 1)]
    for vertex in range(count):
        layers[layer_of[vertex]].append(vertex)
    paths = [_path(edge, layer_of, layers) for edge in edges]
    links = [link for path in paths for link in pairwise(path)]
    ordered = _with_few_crossings(layers, links)
    return Layering(tuple(map(tuple, ordered)), tuple(paths))


def _layers_by_longest_path(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """The layer of each vertex; one with no fewer readers than inputs is next to its readers."""
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        before[target].append(source)
        after[source].append(target)
    layer_of = [0] * count
    for vertex in range(count):
        layer_of[vertex] = max((layer_of[i] + 1 for i in before[vertex]), default=0)
    for vertex in reversed(range(count)):
        if after[vertex] and len(after[vertex]) >= len(before[vertex]):
            layer_of[vertex] = min(layer_of[i] for i in after[vertex]) - 1
    return layer_of


def _path(edge: tuple[int, int], layer_of: Sequence[int], layers: _Layers) -> tuple[int, ...]:
    """The path of an edge; adds a bend to every layer between its ends."""
    source, target = edge
    first = sum(map(len, layers))
    between = range(layer_of[source] + 1, layer_of[target])
    for bend, layer in enumerate(between, start=first):
        layers[layer].append(bend)
    return (source, *range(first, first + len(between)), target)


def _with_few_crossings(layers: _Layers, links: Sequence[_Link]) -> _Layers:
    """The best order found by sweeps to the right and to the left."""
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for source, target in links:
        before.setdefault(target, []).append(source)
        after.setdefault(source, []).append(target)
    best, least = layers, _cost(layers, after)
    for sweep in range(_SWEEPS):
        layers = _swept(layers, before) if sweep % 2 == 0 else _swept(layers[::-1], after)[::-1]
        layers = _transposed(layers, before, after)
        cost = _cost(layers, after)
        if cost < least:
            best, least = layers, cost
    return best


def _swept(layers: _Layers, neighbours: dict[int, list[int]]) -> _Layers:
    """Sort each layer by the mean positions of its neighbours in the layer before."""
    result = [list(layers[0])]
    for layer in layers[1:]:
        position = {vertex: i for i, vertex in enumerate(result[-1])}
        mean = {}
        for i, vertex in enumerate(layer):
            near = [position[n] for n in neighbours.get(vertex, ())]
            mean[vertex] = sum(near) / len(near) if near else float(i)
        result.append(sorted(layer, key=mean.__getitem__))
    return result


def _transposed(
    layers: _Layers, before: dict[int, list[int]], after: dict[int, list[int]]
) -> _Layers:
    """Swap neighbours in a layer where that saves crossings."""
    layers = [list(layer) for layer in layers]
    position = {vertex: i for layer in layers for i, vertex in enumerate(layer)}
    for layer in layers:
        for i in range(len(layer) - 1):
            upper, lower = layer[i], layer[i + 1]
            saved = sum(
                _inverted(upper, lower, near, position) - _inverted(lower, upper, near, position)
                for near in (before, after)
            )
            if saved > 0:
                layer[i], layer[i + 1] = lower, upper
                position[upper], position[lower] = i + 1, i
    return layers


def _inverted(upper: int, lower: int, near: dict[int, list[int]], position: dict[int, int]) -> int:
    """How many links of two vertices cross on one side if the vertices are in this order."""
    ends = sorted(position[n] for n in near.get(lower, ()))
    return sum(bisect_left(ends, position[n]) for n in near.get(upper, ()))


def _cost(layers: _Layers, after: dict[int, list[int]]) -> tuple[int, int]:
    """The number of crossing links; then how far links climb, in positions."""
    position = {vertex: i for layer in layers for i, vertex in enumerate(layer)}
    crossings = climbed = 0
    for layer in layers:
        passed: list[int] = []
        for vertex in layer:
            ends = sorted(position[n] for n in after.get(vertex, ()))
            crossings += sum(len(passed) - bisect_right(passed, end) for end in ends)
            climbed += sum(abs(end - position[vertex]) for end in ends)
            for end in ends:
                insort(passed, end)
    return crossings, climbed
