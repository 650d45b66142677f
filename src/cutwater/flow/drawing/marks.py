"""SVG primitives: rectangles, lines of text, arrow heads and signs."""

from __future__ import annotations

from html import escape

from cutwater.flow.drawing.diagram import Sort
from cutwater.flow.drawing.routing import Box
from cutwater.flow.drawing.text_width import Font

__all__ = ["head", "label", "number", "rectangle", "sign"]

# Each in a square of 11: an arrow out of a wall, a drum, an arrow into a wall.
_SIGNS: dict[Sort, str] = {
    "source": "M0.5 1v9M3.5 5.5h7M7.5 2.5l3 3l-3 3",
    "stateful": "M1 2.5c0 -2 9 -2 9 0v6.5c0 2 -9 2 -9 0zM1 2.5c0 2 9 2 9 0M1 5.8c0 2 9 2 9 0",
    "sink": "M0.5 5.5h7M4.5 2.5l3 3l-3 3M10.5 1v9",
}


def number(value: float) -> str:
    """A coordinate, with at most one decimal.

    Examples
    --------
    >>> number(12.0), number(3.14159)
    ('12', '3.1')
    """
    return f"{round(value, 1):g}" if abs(value) < 1e5 else f"{round(value)}"


def rectangle(box: Box, sort: str, radius: float) -> str:
    """A rectangle with rounded corners."""
    return (
        f'<rect class="{sort}" x="{number(box.x)}" y="{number(box.y)}" '
        f'width="{number(box.width)}" height="{number(box.height)}" rx="{number(radius)}"/>'
    )


def label(x: float, y: float, text: str, font: Font, sort: str, room: float) -> str:
    """A line of text that fits: truncated, and squeezed if its width is not certain.

    Examples
    --------
    >>> from cutwater.flow.drawing.text_width import NAME
    >>> label(0, 10, "a < b", NAME, "cw-name", 100)
    '<text class="cw-text cw-name" x="0" y="10">a &lt; b</text>'
    """
    shown = font.fit(text, room)
    forced = ""
    if not font.is_certain(shown):
        length = number(min(room, font.width(shown)))
        forced = f' textLength="{length}" lengthAdjust="spacingAndGlyphs"'
    place = f'x="{number(x)}" y="{number(y)}"'
    return f'<text class="cw-text {sort}" {place}{forced}>{escape(shown, quote=False)}</text>'


def head(x: float, y: float, size: float, sort: str) -> str:
    """An arrow head that points right, with its tip at the given point."""
    half = size * 0.5
    return (
        f'<path class="{sort}" d="M{number(x)} {number(y)}l{number(-size)} {number(-half)}'
        f'q{number(size * 0.3)} {number(half)} 0 {number(size)}z"/>'
    )


def sign(sort: Sort, x: float, y: float) -> str:
    """The sign for a sort of step; empty if it has none."""
    if sort not in _SIGNS:
        return ""
    place = f'transform="translate({number(x)} {number(y)})"'
    return f'<path class="cw-sign cw-{sort}-sign" {place} d="{_SIGNS[sort]}"/>'
