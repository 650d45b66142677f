"""Draws the orders of `time.md` as Hasse diagrams: ``python docs/draw_times.py`` writes times.svg.

Lines are computed from the orders themselves; only the positions are chosen here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations, product
from pathlib import Path
from typing import Any, NamedTuple

import cutwater as cw
from cutwater.semantics.timely.recursion import Recursion
from cutwater.times import in_rounds

__all__ = ["PANELS", "covers", "drawing"]

FILE = Path(__file__).with_name("times.svg")


class Place(NamedTuple):
    """Where a time is drawn, and how it is written."""

    x: int
    y: int
    label: str


SUM = Recursion(
    [
        ("in", "leaf"),
        ("leaf", "out"),
        ("in", "l"),
        ("in", "r"),
        ("l", "add"),
        ("r", "add"),
        ("add", "out"),
    ],
    calls=["l", "r"],
)
STACKS = {
    ("l", "l"): (700, 250),
    ("l", "r"): (760, 250),
    ("r", "l"): (820, 250),
    ("r", "r"): (880, 250),
    ("l",): (730, 160),
    ("r",): (850, 160),
    (): (790, 70),
}
ROUNDS = list(product(range(2), repeat=2))


class Panel(NamedTuple):
    """A partial order with a title."""

    title: str
    x: int
    places: Mapping[Any, Place]


PANELS = [
    Panel(
        "Product(a, b)",
        150,
        {
            cw.Product(a, b): Place(150 + 46 * (b - a), 250 - 48 * (a + b), f"({a}, {b})")
            for a, b in product(range(3), repeat=2)
        },
    ),
    Panel(
        "Product(t, rounds), two loops",
        470,
        {
            in_rounds(t, rounds): Place(290 + 120 * t, 274 - 24 * t - 56 * n, f"{t}, {rounds}")
            for t in (1, 2)
            for n, rounds in enumerate(ROUNDS)
        },
    ),
    Panel(
        "stacks of calls, at one node",
        790,
        {
            SUM.time("add", stack): Place(x, y, "·".join(stack) or "()")
            for stack, (x, y) in STACKS.items()
        },
    ),
]

HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" role="img" width="960" height="290" '
    'viewBox="0 0 960 290">\n'
    "<title>Three partial orders, earlier times below later ones</title>\n"
    "<desc>Left: pairs of numbers by component, a grid standing on its corner. Middle: "
    "two input times in two nested loops, each a chain of rounds in lexicographic order, "
    "with the chain of the later input time above that of the earlier. Right: stacks of "
    "calls at the node that adds: both inner calls before their caller, the halves "
    "unrelated to each other.</desc>\n"
    "<style>rect{fill:#eef3f8;stroke:#4477aa}line{stroke:#4477aa;stroke-width:1.5}"
    "text{font:13px system-ui,sans-serif;fill:#1b2733}.t{font-weight:600;font-size:14px}"
    "@media(prefers-color-scheme:dark){rect{fill:#1e2b38}text{fill:#dfe8f0}}</style>\n"
)


def covers(times: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """The pairs of an earlier and a later time with none between them."""
    before = [(a, b) for a, b in permutations(times, 2) if a <= b]
    return [(a, b) for a, b in before if not any(a <= c <= b for c in times if c not in (a, b))]


def drawing() -> str:
    """The three diagrams as SVG."""
    return "\n".join([HEAD.rstrip("\n"), *(line for p in PANELS for line in _drawn(p)), "</svg>\n"])


def _drawn(panel: Panel) -> Iterator[str]:
    places = panel.places
    yield f'<text class="t" x="{panel.x}" y="24" text-anchor="middle">{panel.title}</text>'
    for a, b in covers(places):
        one, other = places[a], places[b]
        yield f'<line x1="{one.x}" y1="{one.y}" x2="{other.x}" y2="{other.y}"/>'
    for x, y, label in places.values():
        width = max(34, 14 + 8 * len(label))
        yield f'<rect x="{x - width // 2}" y="{y - 13}" width="{width}" height="26" rx="6"/>'
        yield f'<text x="{x}" y="{y + 5}" text-anchor="middle">{label}</text>'


if __name__ == "__main__":
    FILE.write_text(drawing())
