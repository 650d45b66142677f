"""A flow as one self-contained SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

from cutwater.flow.builder import Flow
from cutwater.flow.drawing.diagram import Diagram, DiagramNode, diagram_of
from cutwater.flow.drawing.layout import PADDING, Badge, DiagramLayout, GroupFrame, laid_out
from cutwater.flow.drawing.legend import legend
from cutwater.flow.drawing.marks import head, label, number, rectangle, sign
from cutwater.flow.drawing.palette import style_sheet
from cutwater.flow.drawing.routing import Box, EdgeRoute, HorizontalRun
from cutwater.flow.drawing.text_width import BADGE, NAME, SMALL, TITLE, VERB, clean
from cutwater.flow.fusing import Plan

__all__ = ["EdgeMark", "svg"]

_MARGIN = 32.0
_HEADING = 60.0
_LEAST_WIDTH = 420.0
_WHERE = {
    "anywhere": "it runs wherever its events are",
    "by key": "it runs where the events of a key are brought together",
    "in one place": "it runs where all events are brought together",
}


@dataclass(frozen=True, slots=True)
class EdgeMark:
    """An annotation of an edge."""

    name: str
    """A CSS class for the edge, for the style sheet of the embedding page."""
    title: str
    """A line for its tooltip, below the type it carries."""


def svg(
    plan_or_flow: Plan | Flow,
    *,
    title: str | None = None,
    marks: Mapping[tuple[int, int], EdgeMark] | None = None,
) -> str:
    """Draw a flow as SVG: deterministic, legible in light and dark mode.

    Parameters
    ----------
    plan_or_flow
        A plan, or a valid flow, which is planned first.
    title
        The heading of the diagram; None: the name of the flow.
    marks
        Annotations of edges, by the numbers of their two steps.

    Examples
    --------
    >>> flow = Flow("lengths")
    >>> _ = flow.source("words", str).map(len).sink("lengths")
    >>> picture = svg(flow)
    >>> picture.startswith("<svg") and picture.count('class="cw-node"') == 3
    True
    """
    diagram = diagram_of(plan_or_flow)
    layout = laid_out(diagram)
    width = max(layout.width, _LEAST_WIDTH)
    key, key_height = legend(diagram, width)
    top = _MARGIN + _HEADING
    whole = Box(0, 0, width + 2 * _MARGIN, top + layout.height + 28 + key_height + 22)
    heading = clean(title if title is not None else diagram.name)
    parts = [
        _opening(whole),
        f"<title>{escape(heading)}</title>",
        f"<desc>{escape(_description(diagram))}</desc>",
        f"<style>\n{style_sheet()}\n</style>",
        rectangle(whole, "cw-page", 0),
        *_heading(heading, diagram, width),
        _moved(_MARGIN, top, _drawing(diagram, layout, marks or {})),
        _moved(_MARGIN, top + layout.height + 28, key),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _opening(whole: Box) -> str:
    width, height = number(whole.width), number(whole.height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cw-flow" role="img" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}">'
    )


def _moved(x: float, y: float, parts: Iterator[str] | list[str]) -> str:
    return "\n".join([f'<g transform="translate({number(x)} {number(y)})">', *parts, "</g>"])


def _heading(heading: str, diagram: Diagram, width: float) -> Iterator[str]:
    yield label(_MARGIN, _MARGIN + 16, heading, TITLE, "cw-title", width)
    fused = sum(group.is_fused for group in diagram.groups)
    counts = [(len(diagram.nodes), "step"), (fused, "fused segment")]
    counts.append((len(diagram.exchanges), "exchange"))
    message = " · ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts if n)
    yield label(_MARGIN, _MARGIN + 36, message, SMALL, "cw-small", width)


def _description(diagram: Diagram) -> str:
    """The diagram as text, for screen readers."""
    text = []
    for node in diagram.nodes:
        edges = [edge for edge in diagram.edges if edge.target == node.number]
        names = " and ".join(diagram.nodes[edge.source].name for edge in edges)
        exchange = f", exchanged {edges[0].exchange}" if edges and edges[0].exchange else ""
        reads = f" reads {names}{exchange}" if names else ""
        text.append(f"{node.verb} {node.name}{reads}")
    return clean(f"Flow {diagram.name}: " + "; ".join(text) + ".")


def _drawing(
    diagram: Diagram, layout: DiagramLayout, marks: Mapping[tuple[int, int], EdgeMark]
) -> Iterator[str]:
    for frame in layout.frames:
        yield from _frame(diagram, frame)
    for route in sorted(layout.routes, key=lambda route: route.edge.exchange is not None):
        yield from _edge(diagram, route, marks.get((route.edge.source, route.edge.target)))
    for badge in layout.badges:
        yield from _badge(badge)
    for node, box in zip(diagram.nodes, layout.boxes, strict=True):
        yield from _node(node, box)


def _frame(diagram: Diagram, frame: GroupFrame) -> Iterator[str]:
    names = [clean(diagram.nodes[n].name) for n in frame.group.nodes]
    box, text = frame.box, f"segment {names[0]}"
    title = f"{text}: {' → '.join(names)} run as one operator; {_WHERE[frame.group.placement]}"
    yield f'<g class="cw-segment"><title>{escape(title)}</title>'
    yield rectangle(box, "cw-frame", 14)
    yield label(box.x + 14, box.y + 19, text, SMALL, "cw-frame-text", box.width - 28)
    yield "</g>"


def _edge(diagram: Diagram, route: EdgeRoute, mark: EdgeMark | None) -> Iterator[str]:
    edge = route.edge
    source, target = diagram.nodes[edge.source], diagram.nodes[edge.target]
    carries = f": {source.carries}" if source.carries else ""
    title = clean(f"{source.name} → {target.name}{carries}")
    sort = "cw-moved" if edge.exchange else "cw-edge"
    if mark is not None:
        title += f"\n{mark.title}"
    marked = f" cw-{mark.name}" if mark is not None else ""
    yield f'<g class="cw-link{marked}" data-from="{edge.source}" data-to="{edge.target}">'
    yield f"<title>{escape(title)}</title>"
    yield f'<path class="{sort}" d="{_path(route, 0 if edge.exchange else 5)}"/>'
    if not edge.exchange:
        yield head(route.runs[-1].end, route.runs[-1].y, 8.5, "cw-head")
    yield "</g>"


def _path(route: EdgeRoute, short: float) -> str:
    """The path of a route; it stops slightly before its end, under the arrow head."""
    first = route.runs[0]
    parts = [f"M{number(first.start)} {number(first.y)}"]
    for run, after in zip(route.runs, [*route.runs[1:], None], strict=True):
        if after is None:
            parts.append(f"H{number(run.end - short)}")
        else:
            parts += [f"H{number(run.end)}", _bend(run, after)]
    return "".join(parts)


def _bend(run: HorizontalRun, after: HorizontalRun) -> str:
    middle = number((run.end + after.start) / 2)
    start, end = number(run.y), number(after.y)
    return f"C{middle} {start} {middle} {end} {number(after.start)} {end}"


def _badge(badge: Badge) -> Iterator[str]:
    box, stub = badge.box, badge.stub
    yield f'<g class="cw-exchange"><title>exchange {escape(clean(badge.group.exchange or ""))}'
    yield "</title>"
    yield f'<path class="cw-moved" d="M{number(stub.start)} {number(stub.y)}'
    yield f'H{number(stub.end - 8)}"/>'
    yield head(stub.end, stub.y, 12, "cw-moved-head")
    yield rectangle(box, "cw-badge", box.height / 2)
    yield label(
        box.x + box.width / 2, box.middle + 4, badge.text, BADGE, "cw-badge-text", box.width - 20
    )
    yield "</g>"


def _node(node: DiagramNode, box: Box) -> Iterator[str]:
    carries = f" ({node.carries})" if node.carries else ""
    state = ", keeps a state" if node.sort == "stateful" else ""
    room = box.width - 2 * PADDING
    tinted = f" cw-{node.sort}-text" if node.sort != "step" else ""
    top = box.y + (0 if node.carries else 8)
    yield f'<g class="cw-node" data-step="{node.number}">'
    yield f"<title>{escape(clean(f'{node.verb} {node.name}{carries}{state}'))}</title>"
    yield rectangle(box, f"cw-box cw-{node.sort}", 11)
    yield sign(node.sort, box.right - PADDING - 11, box.y + 9)
    x = box.x + PADDING
    yield label(x, top + 19, node.verb, VERB, f"cw-verb{tinted}", room)
    yield label(x, top + 38, clean(node.name), NAME, "cw-name", room)
    if node.carries:
        yield label(x, top + 54, clean(node.carries), SMALL, "cw-small", room)
    yield "</g>"
