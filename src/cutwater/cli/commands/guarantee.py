"""``cutwater guarantee``: what does a flow guarantee, and what would it take for more?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cutwater.checking.guarantees.order_sensitivity import Sensitivity, order_sensitivity
from cutwater.cli.files import write_text
from cutwater.cli.screen import live, print_json, stdout, table
from cutwater.cli.targets import load_flow, load_inputs, spark_package
from cutwater.flow import Flow
from cutwater.flow.checked import noted_check
from cutwater.flow.guarantees.engines import ENGINES
from cutwater.flow.guarantees.settings import Setting, assumed_settings
from cutwater.flow.timely.cutting import loop_sentences
from cutwater.report import guarantee_page
from cutwater.report.guarantee_text import details, screens

__all__ = ["guarantee"]


def guarantee(
    target: Annotated[str, typer.Argument(help="The flow: module:name or file.py:name")],
    config: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file with sources and sinks; default: assumed ones, replayable with "
            "and without order"
        ),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(
            help="A dict from source to values: module:name; default: 'inputs' beside the flow, "
            "else generated from the types of the sources"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of inputs and pairs")] = 0,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show witnesses, and each guarantee in full")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Where to write a page with the flow drawn")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON")] = False,
) -> None:
    """Show where order matters, which outputs must wait, and the guarantee from end to end.

    Searches for events whose order is visible; changes nothing. A weak guarantee is no error.
    Exit codes: 0 done, 2 wrong use or bad input.

    Example:  cutwater guarantee examples/averages.py:flow --html guarantee.html
    Example:  cutwater guarantee flow.py:flow --config run.toml
    """
    flow, module = load_flow(target)
    is_given = inputs is not None or hasattr(module, "inputs")
    with live(f"searching '{flow.name}'") as line:
        found = order_sensitivity(
            flow,
            load_inputs(inputs, target, module) if is_given else None,
            seed=seed,
            progress=line.notify,
        )
        settings = _settings(flow, config, found)
    if html is not None:
        write_text(html, guarantee_page.render_guarantees(flow, found, settings))
    if as_json:
        data = {"checked": noted_check(flow), "settings": [one.as_data() for one in settings]}
        print_json({**found.as_data(), **data})
    else:
        _show(flow, found, settings, is_verbose=verbose)


def _settings(flow: Flow, config: Path | None, found: Sensitivity) -> list[Setting]:
    impure = tuple(found.impure or ())
    if config is None:
        return assumed_settings(flow, refuted=found.refuted, impure=impure)
    bound = spark_package().load_config(config, flow)
    from cutwater.spark.end_to_end import bound_setting
    from cutwater.spark.options import settled

    mode = settled(bound.run)["mode"]
    title = f"as in {config.name}, on the {ENGINES[mode].name} engine"
    return [
        bound_setting(
            flow, bound.sources, bound.sinks, title, mode, refuted=found.refuted, impure=impure
        )
    ]


def _show(flow: Flow, found: Sensitivity, settings: list[Setting], *, is_verbose: bool) -> None:
    checked = noted_check(flow)
    for number, screen in enumerate(screens(found, settings, checked)):
        _print(("\n" if number else "") + screen.title)
        table(screen.columns, screen.rows)
    if is_verbose:
        _print("\n" + details(found, settings))
    if loops := list(loop_sentences(flow.steps)):
        _print("\n" + "\n".join(["on Spark:", *loops]))
    if checked is None:
        _print("\nnot checked: cutwater check TARGET looks for crashes that can be seen")


def _print(text: str) -> None:
    stdout.print(text, soft_wrap=True)
