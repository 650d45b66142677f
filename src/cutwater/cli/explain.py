"""``cutwater explain``: a run with failures, and the run without that shows the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cutwater.checking import Explanation
from cutwater.checking import explain as explain_run
from cutwater.cli.files import write_text
from cutwater.cli.screen import live, output, print_json
from cutwater.report import html as page
from cutwater.report import text
from cutwater.trace import read_trace

__all__ = ["explain"]


def explain(
    trace: Annotated[Path, typer.Argument(help="The run: a file of JSON lines")],
    html: Annotated[Path | None, typer.Option(help="Where to write it as a page")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as data")] = False,
) -> None:
    """Explain a run with failures by one without, and verify it by replaying both.

    Exit code 1 if there is no explanation.

    Example:  cutwater explain run.jsonl --html run.html
    """
    with live(f"explaining {trace}"):
        explanation = explain_run(read_trace(trace))
    if html is not None:
        write_text(html, page.render(explanation))
    if as_json:
        print_json(_as_data(explanation))
    else:
        shown = text.render(explanation)
        output.print(shown, highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(0 if explanation.holds else 1)


def _as_data(explanation: Explanation) -> dict[str, Any]:
    return {
        "flow": explanation.trace.header.flow,
        "explained": explanation.holds,
        "refusal": explanation.refusal,
        "steps": len(explanation.trace.steps),
        "generations": explanation.generations,
        "commits": explanation.commits,
        "failure_free": explanation.kept,
        "mapping": explanation.mapping,
    }
