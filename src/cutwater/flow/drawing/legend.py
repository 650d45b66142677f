"""The legend below the diagram: only what occurs in it."""

from __future__ import annotations

from collections.abc import Iterator

from cutwater.flow.drawing.diagram import Diagram, Sort
from cutwater.flow.drawing.marks import head, label, number, rectangle, sign
from cutwater.flow.drawing.routing import Box
from cutwater.flow.drawing.text_width import LEGEND

__all__ = ["legend"]

_SWATCH = Box(0, 0, 26, 16)
_ROW = 24.0
_AFTER_SWATCH, _BETWEEN = 8.0, 22.0
_WORDS: dict[Sort, str] = {
    "source": "source",
    "step": "step",
    "stateful": "step that keeps a state",
    "sink": "sink",
}
_FUSED = "fused: runs as one operator"
_EXCHANGE = "exchange: events are brought together"


def legend(diagram: Diagram, width: float) -> tuple[list[str], float]:
    """The SVG elements of the legend, in rows of at most this width, and its height.

    Examples
    --------
    >>> from cutwater.flow.builder import Flow
    >>> from cutwater.flow.drawing.diagram import diagram_of
    >>> flow = Flow("copy")
    >>> _ = flow.source("here", str).sink("there")
    >>> parts, height = legend(diagram_of(flow), 400)
    >>> height, sum("source" in part for part in parts) > 0
    (24.0, True)
    """
    parts: list[str] = []
    x, y = 0.0, 0.0
    for kind, words in _entries(diagram):
        needed = _SWATCH.width + _AFTER_SWATCH + 0.88 * LEGEND.width(words)
        if x and x + needed > width:
            x, y = 0.0, y + _ROW
        parts += _entry(kind, words, x, y, width)
        x += needed + _BETWEEN
    return parts, y + _ROW


def _entries(diagram: Diagram) -> Iterator[tuple[str, str]]:
    sorts = {node.sort for node in diagram.nodes}
    yield from ((sort, words) for sort, words in _WORDS.items() if sort in sorts)
    if any(group.is_fused for group in diagram.groups):
        yield "frame", _FUSED
    if diagram.exchanges:
        yield "exchange", _EXCHANGE


def _entry(kind: str, words: str, x: float, y: float, width: float) -> Iterator[str]:
    box = Box(x, y, _SWATCH.width, _SWATCH.height)
    yield '<g class="cw-key">'
    if kind == "exchange":
        yield f'<path class="cw-moved" d="M{number(x + 2)} {number(box.middle)}h16"/>'
        yield head(box.right, box.middle, 12, "cw-moved-head")
    elif kind == "frame":
        yield rectangle(box, "cw-frame", 5)
    else:
        yield rectangle(box, f"cw-box cw-{kind}", 5)
        yield _small_sign(kind, box)
    room = width - (_SWATCH.width + _AFTER_SWATCH)
    yield label(box.right + _AFTER_SWATCH, y + 12, words, LEGEND, "cw-legend", room)
    yield "</g>"


def _small_sign(kind: str, box: Box) -> str:
    sort: Sort | None = next((sort for sort in _WORDS if sort == kind), None)
    return sign(sort, box.x + 7.5, box.y + 2.5) if sort else ""
