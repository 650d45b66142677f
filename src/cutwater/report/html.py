"""The report as one self-contained HTML file: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from cutwater.checking.transparency.explanation import Explanation
from cutwater.errors import InputError, Problem
from cutwater.report.templates import asset, filled
from cutwater.report.timeline import Timeline, timeline_of

__all__ = ["MOST_STEPS", "render_html"]

MOST_STEPS = 50_000
"""The longest run a page holds, in steps; browsers fail to open much longer ones."""

_STYLES = ("report.css", "diagram.css", "panel.css", "print.css")
_SCRIPTS = (
    "data.js",
    "words.js",
    "marks.js",
    "layout.js",
    "diagram.js",
    "panel.js",
    "streams.js",
    "overview.js",
    "cursor.js",
)


def render_html(explanation: Explanation) -> str:
    """An explanation as a self-contained HTML page; `InputError` if the run is too long for one."""
    count = len(explanation.trace.steps)
    if count > MOST_STEPS:
        raise InputError(
            Problem(
                "too-long-for-a-page",
                f"the run has {count:,} steps; a page holds {MOST_STEPS:,}",
                f"show its beginning, which is a run: head -n {MOST_STEPS + 1} of its file",
            )
        )
    timeline = timeline_of(explanation)
    script = f'"use strict";\n(() => {{\n{_joined(_SCRIPTS)}}})();\n'
    parts = {
        "title": escape(f"{timeline.flow}: a run explained"),
        "script-hash": _hash(script),
        "style": _joined(_STYLES),
        "script": script,
        "data": _data(timeline),
    }
    return filled("report.html", parts)


def _data(timeline: Timeline) -> str:
    """The data as JSON, escaped so that it cannot open or close an HTML element."""
    return timeline.json().decode().replace("<", r"\u003c")


def _hash(script: str) -> str:
    """The hash for the page's content security policy, which allows this script only."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _joined(names: tuple[str, ...]) -> str:
    return "\n".join(map(asset, names))
