"""The layout of a diagram: positions of boxes, frames, badges and edges.

Each group of fused steps is one vertex of a layered graph, so frames never overlap and no edge
crosses one. A layer is a column; an edge runs horizontally through the columns and bends only
between them, so it never crosses a box.

By hand, not by Graphviz: that is a program to install, and its layouts differ between versions, so
that no test could pin a picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from cutwater.flow.drawing.alignment import Extent, aligned
from cutwater.flow.drawing.diagram import Diagram, DiagramNode, StepGroup
from cutwater.flow.drawing.layering import Layering, layered
from cutwater.flow.drawing.routing import Box, Column, EdgeRoute, Grid, HorizontalRun, routed
from cutwater.flow.drawing.text_width import BADGE, NAME, SMALL, VERB, clean

__all__ = ["PADDING", "Badge", "DiagramLayout", "GroupFrame", "laid_out"]

PADDING = 14.0
"""Space between the text of a box and its barrier."""

_BOX_HEIGHT, _BOX_WIDTHS = 64.0, (104.0, 252.0)
_CARRIES_WIDTH = 178.0  # a longer type name does not widen its box
_SIGN = 24.0  # width that the sign in the corner of a box takes from the verb's line
_BADGE_HEIGHT, _BADGE_WIDTH, _BADGE_PADDING = 22.0, 190.0, 10.0
_STUB = 18.0
_BETWEEN_STEPS, _BETWEEN_GROUPS = 30.0, 24.0
_FRAME, _FRAME_SIDE = Extent(above=28.0, below=13.0), 13.0
_COLUMN_GAPS = (46.0, 112.0)
_SLOPE = 0.24  # how much a gap widens per pixel that an edge climbs in it


@dataclass(frozen=True, slots=True)
class GroupFrame:
    """The frame around fused steps."""

    group: StepGroup
    box: Box


@dataclass(frozen=True, slots=True)
class Badge:
    """The label of an exchange; it is left of its group, and all inputs end at it."""

    group: StepGroup
    box: Box
    stub: HorizontalRun
    """From the badge to the first step."""
    text: str
    """Its text, shortened to fit."""


@dataclass(frozen=True, slots=True)
class DiagramLayout:
    """A diagram with coordinates; x grows to the right, y downwards, both from 0."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    """The box of each step, indexed by its number."""
    frames: tuple[GroupFrame, ...]
    badges: tuple[Badge, ...]
    routes: tuple[EdgeRoute, ...]
    """One for each edge, in the diagram's order."""


def laid_out(diagram: Diagram) -> DiagramLayout:
    """Lay out a diagram.

    Examples
    --------
    >>> from cutwater.flow.builder import Flow
    >>> from cutwater.flow.drawing.diagram import diagram_of
    >>> flow = Flow("lengths")
    >>> _ = flow.source("words", str).map(len).sink("lengths")
    >>> words, length, sink = laid_out(diagram_of(flow)).boxes
    >>> words.right < length.x < length.right < sink.x
    True
    """
    grid = _grid(diagram)
    found: dict[int, Box] = {}
    for vertex, group in enumerate(diagram.groups):
        found |= _boxes(diagram, group, grid.columns[vertex].body, grid.heights[vertex])
    boxes = tuple(found[n] for n in range(len(diagram.nodes)))
    frames = tuple(_frame(group, boxes) for group in diagram.groups if group.is_fused)
    badges = tuple(_badge(group, boxes) for group in diagram.groups if group.exchange)
    entrances = {badge.group.nodes[0]: badge.box for badge in badges}
    return DiagramLayout(
        max(column.right for column in grid.columns.values()),
        max(height + _extent(diagram, v).below for v, height in grid.heights.items()),
        boxes,
        frames,
        badges,
        routed(diagram.edges, boxes, entrances, grid),
    )


def _grid(diagram: Diagram) -> Grid:
    """The layered graph of the groups, with coordinates."""
    holder = {n: i for i, group in enumerate(diagram.groups) for n in group.nodes}
    ends = [(holder[edge.source], holder[edge.target]) for edge in diagram.edges]
    between = [n for n, (source, target) in enumerate(ends) if source != target]
    layering = layered(len(diagram.groups), [ends[n] for n in between])
    heights = aligned(layering, lambda v: _extent(diagram, v), _BETWEEN_GROUPS)
    top = min(height - _extent(diagram, v).above for v, height in heights.items())
    heights = {v: height - top for v, height in heights.items()}
    columns = _columns(diagram, layering, heights)
    placed = zip(columns, layering.layers, strict=True)
    return Grid(
        heights,
        {vertex: column for column, layer in placed for vertex in layer},
        dict(zip(between, layering.paths, strict=True)),
    )


def _extent(diagram: Diagram, vertex: int) -> Extent:
    if vertex >= len(diagram.groups):
        return Extent()
    half = _BOX_HEIGHT / 2
    if not diagram.groups[vertex].is_fused:
        return Extent(half, half)
    return Extent(half + _FRAME.above, half + _FRAME.below)


def _columns(diagram: Diagram, layering: Layering, heights: dict[int, float]) -> list[Column]:
    columns: list[Column] = []
    for layer, climb in zip(layering.layers, _climbs(layering, heights), strict=True):
        groups = [diagram.groups[v] for v in layer if v < len(diagram.groups)]
        least, most = _COLUMN_GAPS
        left = columns[-1].right + round(min(most, least + _SLOPE * climb)) if columns else 0.0
        badges = [_badge_width(group) + _STUB for group in groups if group.exchange]
        body = left + max(badges, default=0.0)
        widths = [_group_width(diagram, group) for group in groups]
        columns.append(Column(left, body, body + max(widths)))
    return columns


def _climbs(layering: Layering, heights: dict[int, float]) -> list[float]:
    """The highest climb of an edge into each layer."""
    layer_of = {v: i for i, layer in enumerate(layering.layers) for v in layer}
    climbs = [0.0] * len(layering.layers)
    for source, target in layering.links:
        climb = abs(heights[source] - heights[target])
        climbs[layer_of[target]] = max(climbs[layer_of[target]], climb)
    return climbs


def _width(node: DiagramNode) -> float:
    """A box is as wide as its widest line, within limits."""
    needed = max(
        NAME.width(clean(node.name)),
        VERB.width(node.verb) + _SIGN,
        min(SMALL.width(clean(node.carries)), _CARRIES_WIDTH),
    )
    least, most = _BOX_WIDTHS
    return float(ceil(min(most, max(least, needed + 2 * PADDING))))


def _group_width(diagram: Diagram, group: StepGroup) -> float:
    inner = sum(_width(diagram.nodes[n]) for n in group.nodes)
    sides = 2 * _FRAME_SIDE if group.is_fused else 0.0
    return inner + _BETWEEN_STEPS * (len(group.nodes) - 1) + sides


def _boxes(diagram: Diagram, group: StepGroup, body: float, middle: float) -> dict[int, Box]:
    x = body + (_FRAME_SIDE if group.is_fused else 0.0)
    boxes = {}
    for n in group.nodes:
        boxes[n] = Box(x, middle - _BOX_HEIGHT / 2, _width(diagram.nodes[n]), _BOX_HEIGHT)
        x = boxes[n].right + _BETWEEN_STEPS
    return boxes


def _frame(group: StepGroup, boxes: tuple[Box, ...]) -> GroupFrame:
    first, last = boxes[group.nodes[0]], boxes[group.nodes[-1]]
    width = last.right - first.x + 2 * _FRAME_SIDE
    height = _FRAME.above + _BOX_HEIGHT + _FRAME.below
    return GroupFrame(group, Box(first.x - _FRAME_SIDE, first.y - _FRAME.above, width, height))


def _badge(group: StepGroup, boxes: tuple[Box, ...]) -> Badge:
    first = boxes[group.nodes[0]]
    body = first.x - (_FRAME_SIDE if group.is_fused else 0.0)
    width = _badge_width(group)
    box = Box(body - _STUB - width, first.middle - _BADGE_HEIGHT / 2, width, _BADGE_HEIGHT)
    text = BADGE.fit(_badge_text(group), width - 2 * _BADGE_PADDING)
    return Badge(group, box, HorizontalRun(box.right, first.x, first.middle), text)


def _badge_width(group: StepGroup) -> float:
    wanted = BADGE.width(_badge_text(group)) + 2 * _BADGE_PADDING
    return float(ceil(min(_BADGE_WIDTH, wanted)))


def _badge_text(group: StepGroup) -> str:
    return clean(group.exchange or "").removeprefix("all in ")
