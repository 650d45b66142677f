"""``cutwater graph``: a flow as a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from cutwater.cli.files import write_text
from cutwater.cli.screen import safe
from cutwater.cli.targets import load_flow
from cutwater.errors import CutwaterError, Problem
from cutwater.flow import Flow
from cutwater.flow.drawing import mermaid, svg

__all__ = ["draw", "graph"]

_FORMATS: dict[str, Callable[[Flow], str]] = {"mermaid": mermaid, "svg": svg}


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


def graph(
    target: Annotated[str, typer.Argument(help="The flow: module:name or file.py:name")],
    format: Annotated[
        str | None, typer.Option(help="'mermaid' or 'svg'; default: by the name of --out")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write it; default: standard output")
    ] = None,
) -> None:
    """Draw a flow, with its exchanges and fused segments.

    Example:  cutwater graph examples/averages.py:flow --out averages.svg
    """
    flow, _ = load_flow(target)
    chosen = format or ("svg" if out and out.suffix == ".svg" else "mermaid")
    drawn = draw(flow, chosen)
    if out is None:
        typer.echo(safe(drawn))
        return
    write_text(out, drawn)
