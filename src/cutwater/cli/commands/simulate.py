"""``cutwater simulate``: a flow in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cutwater.cli.screen import print_json, stdout
from cutwater.cli.targets import load_flow, load_inputs
from cutwater.semantics import Simulation
from cutwater.semantics import simulate as run_in_memory
from cutwater.trace import write_trace

__all__ = ["simulate"]


def simulate(
    target: Annotated[str, typer.Argument(help="The flow: module:name or file.py:name")],
    inputs: Annotated[
        str | None,
        typer.Option(
            help="A dict from source to values: module:name; default: 'inputs' beside the flow"
        ),
    ] = None,
    epoch_size: Annotated[
        int | None, typer.Option(help="Events per epoch; default: all in one")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Where to write the run, step by step, for explain")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON")] = False,
) -> None:
    """Run a flow in memory and show what each sink sees, epoch by epoch.

    Example:  cutwater simulate examples/averages.py:flow --epoch-size 2

    Example:  cutwater simulate examples/averages.py:flow
    --inputs examples/averages.py:crashing --trace run.jsonl
    """
    flow, module = load_flow(target)
    found = load_inputs(inputs, target, module)
    result = run_in_memory(flow, found, epoch_size=epoch_size, trace=trace is not None)
    if trace is not None and result.trace is not None:
        write_trace(result.trace, trace)
    if as_json:
        print_json(_as_data(flow.name, result))
    else:
        _show(result)


def _as_data(flow: str, result: Simulation) -> dict[str, Any]:
    return {
        "flow": flow,
        "epochs": result.epochs,
        "sinks": {sink: result.by_epoch(sink) for sink in result.events},
        "late": dict(result.late),
        "late_events": {name: list(kept) for name, kept in result.late_events.items()},
    }


def _show(result: Simulation) -> None:
    for sink in result.events:
        stdout.print(sink, style="bold", soft_wrap=True)
        for number, values in enumerate(result.by_epoch(sink), 1):
            title = "end" if number == result.epochs else f"epoch {number}"
            if values:
                stdout.print(f"  {title}", style="dim")
            for value in values:
                stdout.print(f"    {value!r}", soft_wrap=True)
    for source, count in result.late.items():
        if count:
            message = f"{count} late events of '{source}' were left out"
            stdout.print(message, soft_wrap=True)
            for value in result.late_events[source]:
                stdout.print(f"    {value!r}", soft_wrap=True)
