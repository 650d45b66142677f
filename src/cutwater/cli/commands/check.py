"""``cutwater check``: can a crash be seen?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cutwater.checking import Finding, FlowReport, check_flow, explain
from cutwater.cli.files import write_text
from cutwater.cli.screen import errors, live, print_json, stdout, table
from cutwater.cli.targets import load_flow, load_function, load_inputs
from cutwater.errors import InputError, Problem
from cutwater.flow import Flow
from cutwater.flow.checked import forget_check, note_check
from cutwater.report import html as page
from cutwater.trace import write_trace

__all__ = ["check"]

_INTERRUPTED = 130
"""The exit code of a command that was ended by Ctrl-C."""


def check(
    target: Annotated[str, typer.Argument(help="The flow: module:name or file.py:name")],
    inputs: Annotated[
        str | None,
        typer.Option(
            help="A dict from source to values: module:name; default: 'inputs' beside the flow, "
            "else generated from the types of the sources"
        ),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="Generate this many inputs, and use no others")
    ] = None,
    crashes: Annotated[int, typer.Option(help="Maximum number of crashes in a run")] = 2,
    instances: Annotated[int, typer.Option(help="Parallel instances of a keyed step")] = 2,
    epoch_size: Annotated[
        int | None, typer.Option(help="Events per epoch; default: all in one")
    ] = None,
    max_states: Annotated[int, typer.Option(help="Maximum number of states to explore")] = 20_000,
    seed: Annotated[int, typer.Option(help="The seed of inputs and random runs")] = 0,
    observe: Annotated[
        str | None,
        typer.Option(
            help="The observer: module:name of a function of a dict from sink to the values "
            "it shows; default: all of them"
        ),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Where to write the run of a counterexample")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Where to write the picture of a counterexample")
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Show how far each check went, and its witnesses"),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON")] = False,
) -> None:
    """Search for visible crashes, impure functions and dependence on order.

    Exit code 1 if there is a counterexample. Ctrl-C shows what was found so far.

    Example:  cutwater check examples/averages.py:flow --crashes 2
    """
    flow, module = load_flow(target)
    if inputs and samples:
        raise InputError(
            Problem("inputs-and-samples", "--inputs and --samples exclude each other", "give one")
        )
    is_given = inputs is not None or (samples is None and hasattr(module, "inputs"))
    with live(f"checking '{flow.name}'") as line:
        report = check_flow(
            flow,
            load_inputs(inputs, target, module) if is_given else None,
            crashes=crashes,
            instances=instances,
            epoch_size=epoch_size,
            samples=10 if samples is None else samples,
            max_states=max_states,
            seed=seed,
            observe=load_function(observe) if observe else None,
            progress=line.notify,
        )
    if as_json:
        print_json(report.as_data())
    else:
        _show(report, verbose)
    _write(report.violations, trace, html)
    _note(flow, report)
    if not report.holds:
        raise typer.Exit(1)
    raise typer.Exit(_INTERRUPTED if report.is_interrupted else 0)


def _show(report: FlowReport, verbose: bool) -> None:
    lines = report.lines()
    if verbose:
        table(["what", "how far", "verdict"], report.table())
        lines = report.details().splitlines()
    elif report.details():
        lines.append("see the inputs and runs with --verbose")
    for line in lines:
        stdout.print(line, soft_wrap=True)


def _note(flow: Flow, report: FlowReport) -> None:
    """Record the check beside the flow, for `run` to report; a counterexample deletes it."""
    try:
        if not report.holds:
            forget_check(flow)
        elif not report.is_interrupted:
            note_check(flow, report.inputs, report.events)
    except OSError as error:
        message = f"run will not know of this check: {error.filename}: {error.strerror}"
        errors.print(message, soft_wrap=True)


def _write(violations: tuple[Finding, ...], trace: Path | None, html: Path | None) -> None:
    """Write the first counterexample that is a run to the requested files."""
    run = next((finding.trace for finding in violations if finding.trace is not None), None)
    if run is None:
        if trace is not None or html is not None:
            message = "there is no counterexample that is a run: nothing was written"
            errors.print(message, soft_wrap=True)
        return
    if trace is not None:
        write_trace(run, trace)
    if html is not None:
        write_text(html, page.render_html(explain(run)))
