"""``cutwater graph``: a flow as a picture."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from cutwater.cli.files import write_text
from cutwater.cli.screen import safe
from cutwater.cli.targets import load_flow, spark_package
from cutwater.errors import CutwaterError, Problem, RefusedError
from cutwater.flow import Flow
from cutwater.flow.drawing import mermaid, svg
from cutwater.flow.guarantees.engines import ENGINES

__all__ = ["draw", "graph", "on_engine"]

_FORMATS: dict[str, Callable[[Flow], str]] = {"mermaid": mermaid, "svg": svg}
_ENDINGS = {".svg": "svg"} | dict.fromkeys(("", ".md", ".mermaid", ".mmd", ".txt"), "mermaid")


def draw(flow: Flow, format: str) -> str:
    """The picture of a flow in a format: ``mermaid`` or ``svg``.

    Examples
    --------
    >>> flow = Flow("copy")
    >>> _ = flow.source("here", str).sink("there")
    >>> print(draw(flow, "mermaid").splitlines()[0])
    flowchart LR
    """
    if format not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise CutwaterError(
            Problem("unknown-format", f"there is no format '{format}'", f"there are: {known}")
        )
    return _FORMATS[format](flow)


def on_engine(flow: Flow, drawn: str, format: str, mode: str) -> str:
    """The picture, with the engine in its title; refuses a flow that the engine cannot run."""
    if mode not in ENGINES:
        known = " or ".join(map(repr, ENGINES))
        raise RefusedError(
            Problem("unknown-choice", f"mode is {mode!r}; it is {known}", f"use {known}")
        )
    if mode == "realtime":
        spark_package()
        from cutwater.spark.job.spec import spark_plan
        from cutwater.spark.realtime.requirements import unsupported

        problems = list(unsupported(spark_plan(flow), {}, {}))
        if problems:
            raise RefusedError(problems)
    engine = ENGINES[mode]
    title = f"{flow.name}, on the {engine.name} engine: {engine.release}"
    if format == "mermaid":
        return f"---\ntitle: {json.dumps(title)}\n---\n{drawn}"
    begin = drawn.index(">", drawn.index("<svg")) + 1
    return f"{drawn[:begin]}<title>{html.escape(title)}</title>{drawn[begin:]}"


def graph(
    target: Annotated[str, typer.Argument(help="The flow: module:name or file.py:name")],
    format: Annotated[
        str | None, typer.Option(help="'mermaid' or 'svg'; default: by the name of --out")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(help="Name the engine: 'microbatch' or 'realtime', if that can run the flow"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write it; default: standard output")
    ] = None,
) -> None:
    """Draw a flow, with its shuffles and fused segments.

    Example:  cutwater graph examples/averages.py:flow --out averages.svg
    Example:  cutwater graph examples/averages.py:flow --mode realtime
    """
    flow, _ = load_flow(target)
    chosen = format or _format_by_name(out)
    drawn = draw(flow, chosen)
    if mode is not None:
        drawn = on_engine(flow, drawn, chosen, mode)
    if out is None:
        typer.echo(safe(drawn))
        return
    write_text(out, drawn)


def _format_by_name(out: Path | None) -> str:
    ending = out.suffix.lower() if out else ""
    if ending not in _ENDINGS:
        raise CutwaterError(
            Problem(
                "unknown-format",
                f"{out} ends in {ending}; a picture is written as .svg, or as .mmd (Mermaid)",
                f"write {Path(out or '').with_suffix('.svg')}, or say --format mermaid or svg",
            )
        )
    return _ENDINGS[ending]
