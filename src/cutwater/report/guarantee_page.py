"""What a flow guarantees, as one self-contained HTML file: no script, no network, no other file.

The style of each edge shows which guarantee holds there, by line style and again by colour. The
reason is in the tooltip of the edge and in the list below the picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from cutwater.checking.guarantees.order_sensitivity import Sensitivity
from cutwater.errors import many
from cutwater.flow import Flow
from cutwater.flow.drawing.svg import EdgeMark, svg
from cutwater.flow.guarantees.end_to_end import EXACTLY_ONCE, SinkGuarantee
from cutwater.flow.guarantees.settings import Setting
from cutwater.report.templates import asset, filled

__all__ = ["render_guarantees"]

_WORDS = {
    "holds": "exactly-once on commit, in every order of the sources",
    "order": "depends on order: exactly-once if sources are replayed in the same order",
    "weak": "at-least-once, or less",
}
_TINT = {"yes": "order", "maybe": "order", "no": "holds"}


def render_guarantees(flow: Flow, found: Sensitivity, settings: Sequence[Setting]) -> str:
    """A flow and its guarantees as a self-contained HTML page."""
    extent = f"{many(found.inputs, 'input')} with {many(found.events, 'event')}"
    return filled(
        "guarantee.html",
        {
            "title": escape(f"{flow.name}: what it guarantees"),
            "extent": f"searched for events whose order matters on {extent}, seed {found.seed}",
            "style": asset("guarantee.css"),
            "settings": "\n".join(_section(flow, setting) for setting in settings),
            "orders": "\n".join(_orders(found)),
        },
    )


def _section(flow: Flow, setting: Setting) -> str:
    marks = {
        edge: EdgeMark(verdict.status, f"{_WORDS[verdict.status]}\n{verdict.why}")
        for edge, verdict in setting.edges.items()
    }
    title = setting.title[:1].upper() + setting.title[1:]
    columns = (
        "sources",
        "sink",
        "release",
        "guarantee",
        "because",
        "with the weakest part replaced",
    )
    early = ("sink", "may be released before the snapshot", "why")
    return "\n".join(
        [
            "<section>",
            f"<h2>{escape(title)}</h2>",
            f'<div class="picture">{svg(flow, marks=marks)}</div>',
            *_key(setting),
            *_reasons(flow, setting),
            *_table(columns, map(_guarantee, setting.sink_guarantees)),
            *_table(early, map(_early, setting.early)),
            "</section>",
        ]
    )


def _key(setting: Setting) -> Iterator[str]:
    """The legend: the line styles in use, and what they mean."""
    there = {verdict.status for verdict in setting.edges.values()}
    yield '<ul class="key">'
    for status, words in _WORDS.items():
        if status in there:
            line = '<line x1="3" y1="5" x2="41" y2="5"/>'
            yield f'<li><svg class="swatch {status}" aria-hidden="true">{line}</svg>{words}</li>'
    yield "</ul>"


def _reasons(flow: Flow, setting: Setting) -> Iterator[str]:
    """The reasons, with the edges of each."""
    together: dict[tuple[str, str], list[str]] = {}
    for (source, target), verdict in setting.edges.items():
        edge = f"{flow.steps[source].name} → {flow.steps[target].name}"
        together.setdefault((verdict.status, verdict.why), []).append(edge)
    yield '<ul class="reasons">'
    for (status, why), edges in together.items():
        message = f"{escape(', '.join(edges))}: {_formatted(why)}"
        yield f'<li class="reason" data-status="{status}">{message}</li>'
    yield "</ul>"


def _guarantee(guarantee: SinkGuarantee) -> list[str]:
    tint = "holds" if guarantee.kind == EXACTLY_ONCE else "weak"
    provided = [f"provided {condition}" for condition in guarantee.provided]
    return [
        escape(", ".join(guarantee.sources)),
        escape(guarantee.sink),
        guarantee.release,
        _tinted(guarantee.kind, tint),
        "<br>".join(map(_formatted, [*guarantee.because, *provided])),
        _formatted(guarantee.replaced) or "-",
    ]


def _early(guarantee: SinkGuarantee) -> list[str]:
    if guarantee.kind == EXACTLY_ONCE:
        same = "a replay gives the same rows in the same order"
        return [escape(guarantee.sink), _tinted("yes", "holds"), same]
    weak = guarantee.weaknesses[0]
    why = _formatted(f"`{weak.part}` {weak.why}")
    return [escape(guarantee.sink), _tinted("must wait", "order"), why]


def _orders(found: Sensitivity) -> Iterator[str]:
    impure = found.impure or {}
    rows = [
        [
            escape(step.step),
            _tinted(step.matters, _TINT[step.matters]),
            _formatted(step.why) + _witness([step.witness, impure.get(step.step, "")]),
            "<br>".join(
                escape(f"{c.claim}: {c.verdict} ({c.extent})") + _witness([c.witness])
                for c in step.claims
            )
            or "-",
        ]
        for step in found.steps
    ]
    if rows:
        yield from _table(("step", "order matters", "why", "claims"), rows)
    sinks = [
        [
            escape(sink.sink),
            _tinted(sink.matters, _TINT[sink.matters]),
            _formatted(sink.why) + _witness(sink.witnesses),
        ]
        for sink in found.sinks
    ]
    yield from _table(("sink", "order matters", "why"), sinks)


def _witness(texts: Sequence[str]) -> str:
    shown = "\n".join(filter(None, texts))
    return (
        f"<details><summary>witness</summary><pre>{escape(shown)}</pre></details>" if shown else ""
    )


def _formatted(text: str) -> str:
    """A sentence as HTML, with its names in ``<code>``."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def _tinted(text: str, tint: str) -> str:
    return f'<span class="{tint}-text">{escape(text)}</span>'


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "<table><thead><tr>"
    yield "".join(f"<th>{escape(column)}</th>" for column in columns)
    yield "</tr></thead><tbody>"
    for row in rows:
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>"
    yield "</tbody></table>"
