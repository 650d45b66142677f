"""A flow as Mermaid text, for tools that render Mermaid."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cutwater.flow.builder import Flow
from cutwater.flow.drawing.diagram import (
    Diagram,
    DiagramEdge,
    DiagramNode,
    Sort,
    StepGroup,
    diagram_of,
)
from cutwater.flow.drawing.text_width import clean
from cutwater.flow.fusing import Plan

__all__ = ["mermaid"]

_SHAPES: dict[Sort, tuple[str, str]] = {
    "source": ("([", "])"),
    "step": ("[", "]"),
    "stateful": ("[(", ")]"),
    "sink": ("[[", "]]"),
}
# Barriers only: fill and text follow the reader's theme, light or dark.
_CLASSES: dict[Sort, str] = {
    "source": "stroke:#2f9e78,stroke-width:2px",
    "stateful": "stroke:#8468d3,stroke-width:2px",
    "sink": "stroke:#dd7a3b,stroke-width:2px",
}

# Letters and digits of any script need no escaping, nor do these signs between them: 'by_sensor',
# '1.5'. Other signs become entities, which is enough for Mermaid's grammar and for HTML.
_PLAIN = re.compile(r"(?<=[^\W_])[_-]+(?=[^\W_])|(?<=\d)\.(?=\d)|[^\W_]+|[ ,]|[^\x00-\x7f°¶]")

# Some versions parse Markdown, links, icons and formulas after resolving entities. A word joiner,
# which has no width, separates the characters that start one from their neighbours.
_APART = re.compile(r"[:@\\$°¶_.]|\](?=[(\[])")
_JOINER = "#8288;"
_LOOKALIKES = {"*": "∗", "`": "ˋ", "~": "∼"}


def mermaid(plan_or_flow: Plan | Flow) -> str:
    """A Mermaid flowchart: fused steps in a frame, exchanges as thick labelled edges.

    Examples
    --------
    >>> from cutwater.flow.tasks import task
    >>> @task(initial=0)
    ... def seen(state: int, event: int) -> tuple[int, list[int]]:
    ...     return state + 1, [state + 1]
    >>> flow = Flow("lengths")
    >>> words = flow.source("words", str)
    >>> _ = words.map(len).key_by(abs).apply(seen).sink("lengths")
    >>> print(mermaid(flow), end="")
    flowchart LR
      subgraph g0["segment words"]
        s0(["words<br/>source · str"]):::source
        s1["len<br/>map"]
      end
      subgraph g2["segment by_abs"]
        s2["by_abs<br/>key_by"]
        s3[("seen<br/>apply · int")]:::stateful
      end
      s4[["lengths<br/>sink · int"]]:::sink
      s0 --> s1
      s1 == "by abs" ==> s2
      s2 --> s3
      s3 --> s4
      classDef source stroke:#2f9e78,stroke-width:2px
      classDef stateful stroke:#8468d3,stroke-width:2px
      classDef sink stroke:#dd7a3b,stroke-width:2px
    """
    return "".join(f"{line}\n" for line in _lines(diagram_of(plan_or_flow)))


def _lines(diagram: Diagram) -> Iterator[str]:
    yield "flowchart LR"
    for group in diagram.groups:
        yield from (f"  {line}" for line in _group(diagram, group))
    for edge in diagram.edges:
        yield f"  {_edge(edge)}"
    sorts = {node.sort for node in diagram.nodes}
    for sort, style in _CLASSES.items():
        if sort in sorts:
            yield f"  classDef {sort} {style}"


def _group(diagram: Diagram, group: StepGroup) -> Iterator[str]:
    nodes = [diagram.nodes[n] for n in group.nodes]
    if not group.is_fused:
        yield _node(nodes[0])
        return
    yield f'subgraph g{nodes[0].number}["segment {_escaped(nodes[0].name)}"]'
    yield from (f"  {_node(node)}" for node in nodes)
    yield "end"


def _node(node: DiagramNode) -> str:
    opening, closing = _SHAPES[node.sort]
    verb = _escaped(node.verb) + (f" · {_escaped(node.carries)}" if node.carries else "")
    styled = f":::{node.sort}" if node.sort in _CLASSES else ""
    return f's{node.number}{opening}"{_escaped(node.name)}<br/>{verb}"{closing}{styled}'


def _edge(edge: DiagramEdge) -> str:
    if edge.exchange is None:
        return f"s{edge.source} --> s{edge.target}"
    return f's{edge.source} == "{_escaped(edge.exchange)}" ==> s{edge.target}'


def _escaped(text: str) -> str:
    """A text, escaped for use inside quotes.

    >>> _escaped('by_sensor'), _escaped('a "b" <c>'), _escaped('list[int]')
    ('by_sensor', 'a #34;b#34; #60;c#62;', 'list#91;int#93;')
    """
    line = clean(text)
    result = [] if line[:1].isalpha() else [_JOINER]
    at = 0
    while at < len(line):
        plain = _PLAIN.match(line, at)
        result.append(plain.group() if plain else _entity(line, at))
        at = plain.end() if plain else at + 1
    return "".join(result)


def _entity(line: str, at: int) -> str:
    char = line[at]
    if char in _LOOKALIKES:
        return _LOOKALIKES[char]
    entity = f"#{ord(char)};"
    return f"{_JOINER}{entity}{_JOINER}" if _APART.match(line, at) else entity
