"""The routes of edges: horizontal through the columns, bending only between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cutwater.flow.drawing.diagram import DiagramEdge

__all__ = ["Box", "Column", "EdgeRoute", "Grid", "HorizontalRun", "routed"]

_BETWEEN_PORTS = 12.0
_LEAD = 10.0  # an edge is horizontal at its arrow head
_PORTS_SHARE = 0.55  # of a side, so that edges do not enter at a corner


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right side."""
        return self.x + self.width

    @property
    def middle(self) -> float:
        """Its middle line."""
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class HorizontalRun:
    """A horizontal line."""

    start: float
    end: float
    y: float


@dataclass(frozen=True, slots=True)
class EdgeRoute:
    """The route of an edge: horizontal runs, with a bend from the end of each to the next."""

    edge: DiagramEdge
    runs: tuple[HorizontalRun, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """The horizontal extent of a layer; between two columns there are only edges."""

    left: float
    body: float
    """Where groups begin; badges are left of it."""
    right: float


@dataclass(frozen=True, slots=True)
class Grid:
    """The coordinates of the vertices of a layering."""

    heights: Mapping[int, float]
    """The middle line of each vertex."""
    columns: Mapping[int, Column]
    """The column of each vertex."""
    paths: Mapping[int, tuple[int, ...]]
    """The vertices that an edge passes, by its number; absent for an edge within a group."""


def routed(
    edges: Sequence[DiagramEdge], boxes: Sequence[Box], entrances: Mapping[int, Box], grid: Grid
) -> tuple[EdgeRoute, ...]:
    """The route of each edge, from the box of its source to that of its target.

    Where a target has an entrance, its edges end there.

    Examples
    --------
    >>> boxes = [Box(0, 0, 50, 20), Box(80, 0, 50, 20)]
    >>> routed([DiagramEdge(0, 1)], boxes, {}, Grid({}, {}, {}))[0].runs
    (HorizontalRun(start=50, end=80, y=10.0),)
    """
    ends = [entrances.get(edge.target, boxes[edge.target]) for edge in edges]
    ports = _ports(edges, ends, grid)
    return tuple(
        EdgeRoute(edge, _runs(boxes[edge.source], end, port, grid, grid.paths.get(n, ())))
        for n, (edge, end, port) in enumerate(zip(edges, ends, ports, strict=True))
    )


def _runs(
    source: Box, target: Box, port: float, grid: Grid, path: tuple[int, ...]
) -> tuple[HorizontalRun, ...]:
    if not path:
        return (HorizontalRun(source.right, target.x, source.middle),)
    first, *bends, last = (grid.columns[vertex] for vertex in path)
    return (
        HorizontalRun(source.right, first.right, source.middle),
        *(
            HorizontalRun(column.left, column.right, grid.heights[vertex])
            for vertex, column in zip(path[1:-1], bends, strict=True)
        ),
        HorizontalRun(last.left - _LEAD, target.x, target.middle + port),
    )


def _ports(edges: Sequence[DiagramEdge], ends: Sequence[Box], grid: Grid) -> list[float]:
    """For each edge, how far from the middle it enters, in order of arrival."""
    arriving: dict[int, list[int]] = {}
    for n, path in grid.paths.items():
        arriving.setdefault(path[-1], []).append(n)
    ports = [0.0] * len(edges)
    for numbers in arriving.values():
        numbers.sort(key=lambda n: (grid.heights[grid.paths[n][-2]], n))
        room = ends[numbers[0]].height * _PORTS_SHARE
        step = min(_BETWEEN_PORTS, room / max(1, len(numbers) - 1))
        for i, n in enumerate(numbers):
            ports[n] = (i - (len(numbers) - 1) / 2) * step
    return ports
