"""The command line as a whole: its verbs, and one handler for every error."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from traceback import format_exception
from typing import Annotated, NoReturn

import typer

import cutwater
from cutwater.cli.commands.check import check
from cutwater.cli.commands.checkpoint import checkpoint
from cutwater.cli.commands.explain import explain
from cutwater.cli.commands.frontier import frontier
from cutwater.cli.commands.graph import graph
from cutwater.cli.commands.guarantee import guarantee
from cutwater.cli.commands.init import init
from cutwater.cli.commands.run import run
from cutwater.cli.commands.simulate import simulate
from cutwater.cli.commands.state import state
from cutwater.cli.overseer import OVERSEEN, overseen
from cutwater.cli.screen import errors
from cutwater.endings import exit_code, of_unexpected
from cutwater.errors import CutwaterError

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(init)
app.command()(simulate)
app.command()(check)
app.command()(guarantee)
app.command()(run)
app.command()(explain)
app.command()(graph)
app.command()(state)
app.command()(frontier)
app.add_typer(checkpoint, name="checkpoint")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"cutwater {cutwater.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="The version")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors")] = False,
) -> None:
    """Stateful dataflow on Spark whose guarantees can be checked.

    A target is module:name or path/to/file.py:name.
    Exit codes: 0 it holds, 1 it does not (run: start it again), 2 wrong use or bad input.

    Example:  cutwater init means
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; wrong use or bad input is a message on standard error and exit code 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and "check" in given[:2]:
        _fix_hash_seed()
    is_debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    is_own_process = arguments is None and any(name in given[:1] for name in OVERSEEN)

    def command() -> None:
        app(given, prog_name="cutwater")

    try:
        overseen(command) if is_own_process else command()
    except Exception as error:
        if is_debug:
            errors.print("".join(format_exception(error)), end="", soft_wrap=True)
        _end_with(of_unexpected(error))


def _fix_hash_seed() -> None:
    """Restart with one hash seed for all: the same check has the same report."""
    if "PYTHONHASHSEED" not in os.environ and sys.orig_argv[1:]:
        env = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], env)


def _end_with(error: CutwaterError) -> NoReturn:
    for problem in error.problems or (error,):
        message = f"error: {problem}"
        errors.print(message, style="red", soft_wrap=True)
    sys.exit(exit_code(error))
