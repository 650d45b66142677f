"""Vertical positions for the vertices of a layering: near their neighbours, without overlaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cutwater.flow.drawing.layering import Layering

__all__ = ["Extent", "aligned", "spread"]

_SWEEPS = 24
_WEIGHT_OF_BENDS = 4.0  # long edges are kept straight before short ones


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a vertex extends above and below its middle line; zero for a bend."""

    above: float = 0.0
    below: float = 0.0

    @property
    def is_bend(self) -> bool:
        """Is it only a bend that an edge passes through?"""
        return self == Extent()


def aligned(layering: Layering, extents: Callable[[int], Extent], gap: float) -> dict[int, float]:
    """The middle line of each vertex, such that vertices of a layer are at least a gap apart.

    Sweeps to the left and to the right move each layer as close to its neighbours as it can get.
    The last one goes right, so that chains are straight; then vertices without inputs follow.

    Examples
    --------
    >>> from cutwater.flow.drawing.layering import layered
    >>> diamond = layered(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    >>> aligned(diamond, lambda vertex: Extent(10, 10), gap=20)
    {0: 20.0, 1: 0.0, 2: 40.0, 3: 20.0}
    """
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for source, target in layering.links:
        before.setdefault(target, []).append(source)
        after.setdefault(source, []).append(target)
    heights: dict[int, float] = {}
    for layer in layering.layers:
        _settle(layer, [0.0] * len(layer), heights, extents, gap)
    for sweep in range(_SWEEPS):
        near, layers = (before, layering.layers) if sweep % 2 else (after, layering.layers[::-1])
        for layer in layers:
            _settle(layer, [_mean(v, near, heights) for v in layer], heights, extents, gap)
    for layer in layering.layers[::-1]:
        wanted = [heights[v] if v in before else _mean(v, after, heights) for v in layer]
        _settle(layer, wanted, heights, extents, gap)
    top = min((heights[v] for v in heights), default=0.0)
    return {vertex: float(round(heights[vertex] - top)) for vertex in sorted(heights)}


def _mean(vertex: int, near: dict[int, list[int]], heights: dict[int, float]) -> float:
    """The mean height of its neighbours on one side; its own if it has none."""
    side = [heights[n] for n in near.get(vertex, ())]
    return sum(side) / len(side) if side else heights[vertex]


def _settle(
    layer: Sequence[int],
    wanted: Sequence[float],
    heights: dict[int, float],
    extents: Callable[[int], Extent],
    gap: float,
) -> None:
    own = [extents(vertex) for vertex in layer]
    apart = [a.below + gap + b.above for a, b in pairwise(own)]
    weights = [_WEIGHT_OF_BENDS if extent.is_bend else 1.0 for extent in own]
    for vertex, height in zip(layer, spread(wanted, apart, weights), strict=True):
        heights[vertex] = height


def spread(
    wanted: Sequence[float], apart: Sequence[float], weights: Sequence[float]
) -> list[float]:
    """The positions nearest to the wanted ones (least squares) that keep order and distances.

    Isotonic regression by pooling: positions that would be too close move as one block to their
    weighted mean.

    Examples
    --------
    >>> spread([0.0, 0.0, 90.0], [20.0, 20.0], [1.0, 1.0, 1.0])
    [-10.0, 10.0, 90.0]
    """
    offsets = [0.0]
    for distance in apart:
        offsets.append(offsets[-1] + distance)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, size
    for wish, offset, weight in zip(wanted, offsets, weights, strict=False):
        mean, size = wish - offset, 1
        while blocks and blocks[-1][0] >= mean:
            other, heft, more = blocks.pop()
            mean = (mean * weight + other * heft) / (weight + heft)
            weight, size = weight + heft, size + more
        blocks.append((mean, weight, size))
    means = [mean for mean, _, size in blocks for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]
