"""``cutwater checkpoint``: show, verify and rescale a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cutwater.cli.pairs import pairs
from cutwater.cli.screen import errors, live, print_json, stdout, table
from cutwater.cli.targets import spark_package
from cutwater.errors import many

if TYPE_CHECKING:
    from cutwater.spark import CheckpointSummary, TickSummary

__all__ = ["checkpoint", "rescale", "show", "verify"]

checkpoint = typer.Typer(
    no_args_is_help=True,
    help="Show or verify a checkpoint, or repartition its state.\n\n"
    "Example:  cutwater checkpoint show state",
)

_Checkpoint = Annotated[
    Path,
    typer.Argument(metavar="checkpoint", help="The checkpoint folder of a run"),
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON")]


@checkpoint.command()
def show(checkpoint: _Checkpoint, as_json: _AsJson = False) -> None:
    """Show the flow, progress and partitions of a checkpoint.

    Example:  cutwater checkpoint show state
    """
    found = spark_package().describe(checkpoint)
    if as_json:
        print_json(found)
    else:
        _show(found)


@checkpoint.command()
def verify(
    checkpoint: _Checkpoint,
    sink: Annotated[
        list[str] | None,
        typer.Option(help="NAME=FOLDER of a sink whose ledger is checked too; once for each"),
    ] = None,
    as_json: _AsJson = False,
) -> None:
    """Check every file of a checkpoint: is it intact, and is none missing?

    Exit code 1 if something is damaged or missing.

    Example:  cutwater checkpoint verify state --sink means=out
    """
    spark = spark_package()
    folders = {name: spark.folder(path) for name, path in pairs("--sink", sink or []).items()}
    with live(f"verifying {checkpoint}"):
        found = spark.verify(checkpoint, folders)
    if as_json:
        print_json(found)
    else:
        for problem in found.problems:
            _print(str(problem))
        verdict = many(len(found.problems), "problem") if found.problems else "intact"
        _print(f"{found.flow or checkpoint}: {many(found.files, 'file')} checked; {verdict}")
    raise typer.Exit(1 if found.problems else 0)


@checkpoint.command()
def rescale(
    checkpoint: _Checkpoint,
    partitions: Annotated[int, typer.Option(help="1, 2, 4, 8 or 16: a divisor of the buckets")],
    master: Annotated[str, typer.Option(help="Where Spark runs")] = "local[*]",
    as_json: _AsJson = False,
) -> None:
    """Repartition the state of a checkpoint while nothing runs.

    Example:  cutwater checkpoint rescale state --partitions 8
    """
    spark = spark_package()
    with live(f"{checkpoint}: moving its state to {partitions} partitions"):
        done = spark.rescale(checkpoint, partitions, master=master, notify=_notify)
    if as_json:
        print_json(done)
    else:
        _print(f"{done.flow}: {done.before} partitions before, {done.partitions} now")


def _show(found: CheckpointSummary) -> None:
    unit = "tick" if found.ticks else "epoch"
    on = " on the real-time engine" if found.ticks else ""
    runs = many(found.generation, "run")
    _print(f"{found.flow}: {runs}{on}; the next {unit} is {found.next_epoch}")
    _print(f"{found.buckets} buckets on {found.partitions} partitions")
    if found.rescaling_to is not None:
        _print(f"rescaling to {found.rescaling_to} partitions is not finished")
    elif found.ticks:
        _print(_snapshot(found.ticks))
    elif found.is_mid_epoch:
        _print(f"epoch {found.next_epoch - 1} is not finished")
    if found.loop is not None:
        how = found.loop.message
        _print(f"the loop '{found.loop.loop}', which runs one iteration per epoch, {how}")
    if found.is_closed:
        _print("closed: its input has ended")
    _print(f"steps that keep a state: {', '.join(found.steps) or 'none'}")
    rows = [(n, s.kind, _read(s.read), _newest(s.newest_time)) for n, s in found.sources.items()]
    table(["source", "kind", "read", "newest"], rows)


def _snapshot(ticks: TickSummary) -> str:
    if ticks.snapshot is None or ticks.snapshot_time is None:
        return f"no snapshot yet; a start replays {many(ticks.to_replay, 'tick')} with records"
    moment = datetime.fromtimestamp(ticks.snapshot_time, UTC).isoformat(" ", "seconds")
    return (
        f"the newest snapshot is of tick {ticks.snapshot}, {moment}; a start replays "
        f"{many(ticks.to_replay, 'tick')} with records after it"
    )


def _read(amounts: Mapping[str, int]) -> str:
    return ", ".join(many(amount, what.removesuffix("s")) for what, amount in amounts.items())


def _newest(time: object) -> str:
    return "" if time is None else str(time)


def _print(text: str) -> None:
    stdout.print(text, soft_wrap=True)


def _notify(text: str) -> None:
    errors.print(text, soft_wrap=True)
