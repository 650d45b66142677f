"""The colours of the diagram, for light and dark mode, and the style sheet."""

from __future__ import annotations

from cutwater.flow.drawing.text_width import BADGE, LEGEND, NAME, SMALL, TITLE, VERB, Font

__all__ = ["COLOURS", "LEGIBLE", "style_sheet"]

COLOURS = {
    "page": ("#ffffff", "#11161d"),
    "text": ("#1b2430", "#e9eef4"),
    "muted": ("#556270", "#a3b0be"),
    "edge": ("#8b98a7", "#76848f"),
    "step": ("#ffffff", "#1e2731"),
    "step-line": ("#c3cdd8", "#44525f"),
    "source": ("#e4f6ef", "#12352b"),
    "source-line": ("#2f9e78", "#3fb68d"),
    "source-text": ("#176b4f", "#6fd6b1"),
    "sink": ("#fdeee3", "#3b2518"),
    "sink-line": ("#dd7a3b", "#de8a53"),
    "sink-text": ("#9c4712", "#f3ad7d"),
    "stateful": ("#f3effd", "#2a2346"),
    "stateful-line": ("#8468d3", "#9980e6"),
    "stateful-text": ("#5c40b0", "#c3b2fb"),
    "frame": ("#eef3fa", "#182230"),
    "frame-line": ("#d3deed", "#2b3d55"),
    "frame-text": ("#4c658a", "#93aed2"),
    "exchange": ("#2f62cf", "#7ba4ff"),
    "on-exchange": ("#ffffff", "#0c1424"),
}
"""Each colour by its role: (light, dark)."""

LEGIBLE = [
    ("text", "page"),
    ("muted", "page"),
    ("text", "step"),
    ("muted", "step"),
    ("text", "source"),
    ("muted", "source"),
    ("source-text", "source"),
    ("text", "sink"),
    ("muted", "sink"),
    ("sink-text", "sink"),
    ("text", "stateful"),
    ("muted", "stateful"),
    ("stateful-text", "stateful"),
    ("frame-text", "frame"),
    ("on-exchange", "exchange"),
]
"""Pairs of text and background colours that must contrast."""

_FAMILY = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"

# selector: the property and the role of its colour
_RULES = [
    ("page", "fill", "page"),
    ("title", "fill", "text"),
    ("name", "fill", "text"),
    ("verb", "fill", "muted"),
    ("small", "fill", "muted"),
    ("legend", "fill", "muted"),
    ("edge", "stroke", "edge"),
    ("head", "fill", "edge"),
    ("moved", "stroke", "exchange"),
    ("moved-head", "fill", "exchange"),
    ("badge", "fill", "exchange"),
    ("badge-text", "fill", "on-exchange"),
    ("frame", "fill", "frame"),
    ("frame", "stroke", "frame-line"),
    ("frame-text", "fill", "frame-text"),
    ("step", "fill", "step"),
    ("step", "stroke", "step-line"),
    *(
        rule
        for sort in ("source", "sink", "stateful")
        for rule in (
            (sort, "fill", sort),
            (sort, "stroke", f"{sort}-line"),
            (f"{sort}-text", "fill", f"{sort}-text"),
            (f"{sort}-sign", "stroke", f"{sort}-text"),
        )
    ),
]

_FONTS: list[tuple[str, Font]] = [
    ("title", TITLE),
    ("name", NAME),
    ("verb", VERB),
    ("small", SMALL),
    ("badge-text", BADGE),
    ("frame-text", SMALL),
    ("legend", LEGEND),
]


def style_sheet() -> str:
    """The style sheet of the diagram; all its classes begin with ``cw-``.

    Examples
    --------
    >>> "prefers-color-scheme: dark" in style_sheet()
    True
    """
    fonts = [_font(name, font) for name, font in _FONTS]
    shapes = [
        ".cw-box,.cw-frame{stroke-width:1.4}",
        ".cw-edge,.cw-moved,.cw-sign{fill:none;stroke-linecap:round;stroke-linejoin:round}",
        ".cw-edge{stroke-width:1.7}",
        ".cw-moved{stroke-width:3.6}",
        ".cw-sign{stroke-width:1.4}",
        ".cw-badge-text{text-anchor:middle}",
    ]
    dark = "@media (prefers-color-scheme: dark){\n" + "\n".join(_colours(1)) + "\n}"
    return "\n".join([f".cw-text{{font-family:{_FAMILY}}}", *fonts, *shapes, *_colours(0), dark])


def _font(name: str, font: Font) -> str:
    weight = ";font-weight:600" if font.is_bold else ""
    return f".cw-{name}{{font-size:{font.size:g}px{weight}}}"


def _colours(scheme: int) -> list[str]:
    return [f".cw-{name}{{{what}:{COLOURS[role][scheme]}}}" for name, what, role in _RULES]
