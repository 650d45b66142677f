"""``cutwater explain``: a run with failures, and a failure-free run that shows the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cutwater.checking import Explanation, Reexecuted, reexecute
from cutwater.checking import explain as explain_run
from cutwater.cli.files import write_text
from cutwater.cli.screen import live, print_json, stdout
from cutwater.cli.targets import load_flow, load_inputs
from cutwater.errors import many
from cutwater.report import html as page
from cutwater.report import text
from cutwater.trace import Trace, read_trace

__all__ = ["explain"]


def explain(
    trace: Annotated[Path, typer.Argument(help="The run: a file of JSON lines")],
    flow: Annotated[
        str | None,
        typer.Option(
            help="The flow that was run, module:name: its functions are called again and compared "
            "with the run; default: the run is replayed as it was recorded"
        ),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(help="With --flow, the inputs of the run; default: 'inputs' beside the flow"),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Where to write it as a page")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON")] = False,
) -> None:
    """Explain a run with failures by one without, and verify it by replaying both.

    Without --flow the results of each task come from the trace.
    With it the functions are called again, and must give those results.
    Exit code 1 if there is no explanation.

    Example:  cutwater explain run.jsonl --html run.html
    Example:  cutwater explain run.jsonl --flow flow.py:flow
    """
    with live(f"explaining {trace}"):
        run = read_trace(trace)
        explanation = explain_run(run)
        again = _reexecuted(run, flow, inputs) if flow else None
    if again is not None and explanation.holds:
        explanation = replace(explanation, refusal=again.refusal)
    if html is not None:
        write_text(html, page.render_html(explanation))
    if as_json:
        print_json({**_as_data(explanation), "calls": again and again.calls})
    else:
        shown = text.render_text(explanation) + _how(again)
        stdout.print(shown, soft_wrap=True)
    raise typer.Exit(0 if explanation.holds else 1)


def _reexecuted(run: Trace, target: str, inputs: str | None) -> Reexecuted:
    flow, module = load_flow(target)
    has_inputs = inputs is not None or hasattr(module, "inputs")
    return reexecute(run, flow, load_inputs(inputs, target, module) if has_inputs else None)


def _how(again: Reexecuted | None) -> str:
    if again is None:
        return "replayed as it was recorded; with --flow the functions are called again"
    return f"re-executed: the functions of the flow were called again, {many(again.calls, 'call')}"


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
