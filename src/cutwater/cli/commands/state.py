"""``cutwater state``: the state of a step at an epoch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cutwater.cli.screen import errors, live, print_json, stdout, table
from cutwater.cli.targets import spark_package

if TYPE_CHECKING:
    from cutwater.spark import StepState

__all__ = ["state"]


def state(
    checkpoint: Annotated[Path, typer.Argument(help="The checkpoint folder of a run")],
    step: Annotated[str, typer.Argument(help="A step that keeps a state")],
    epoch: Annotated[
        int | None, typer.Option(help="The epoch or tick at whose end; default: the newest")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help='Only this key: text, or JSON such as 3 or ["a", 3]; once for each'),
    ] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of keys to show", min=1)] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON")] = False,
) -> None:
    """Show the state of a step at the end of an epoch. Read-only; a run may continue meanwhile.

    Example:  cutwater state state running_average --epoch 12 --key sensor-7
    """
    spark = spark_package()
    keys = [candidate for text in key or [] for candidate in _candidates(text)]
    with live(f"reading the state of '{step}'"):
        found = spark.read_state(checkpoint, step, epoch=epoch, keys=keys, limit=limit)
    if as_json:
        print_json(found)
    else:
        _show(found, limit)


def _candidates(text: str) -> list[Any]:
    """The possible keys for a text on the command line: the text, and its value as JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    return [text, tuple(value) if isinstance(value, list) else value]


def _show(found: StepState, limit: int) -> None:
    message = f"{found.flow}: '{found.step}' at the end of {found.unit} {found.epoch}"
    stdout.print(message, soft_wrap=True)
    columns = list(dict.fromkeys(name for row in found.rows for name in row))
    if columns:
        table(columns, [[_cell(row.get(name, "")) for name in columns] for row in found.rows])
    else:
        stdout.print("no key has a state")
    if not found.is_whole:
        errors.print(f"there are more than {limit}; see them with --limit")


def _cell(value: Any) -> Any:
    is_plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return value if is_plain else json.dumps(value, default=str)
