"""Every option of `cutwater run` and every key of `[run]` is described in `docs/operations.md`."""

import re

import pytest
import typer
from support.repo.package import ROOT

from cutwater.cli.app import app
from cutwater.spark.options import ProcessOptions, RunOptions, declared

PAGE = (ROOT / "docs" / "operations.md").read_text()
OPTIONS = sorted(
    flag
    for parameter in typer.main.get_command(app).commands["run"].params
    for flag in parameter.opts
    if flag.startswith("--")
)
KEYS = {**declared(RunOptions), **declared(ProcessOptions)}


def row(name: str) -> str:
    """The row of a table of the page that begins with a name."""
    return next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))


def in_the_table(text: str) -> set[str]:
    """The options that begin a row of the table of options."""
    first_cells = re.findall(r"^\| (`--[^|]*) \|", text, flags=re.MULTILINE)
    return {flag for cell in first_cells for flag in re.findall(r"`(--[a-z-]+)", cell)}


def test_the_command_has_options():
    assert {"--checkpoint", "--mode", "--no-fsync", "--json"} <= set(OPTIONS)


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_stands_in_the_table(option):
    assert option in in_the_table(PAGE)


def test_nothing_else_stands_in_the_table():
    assert in_the_table(PAGE) == set(OPTIONS)


def test_the_keys_of_run_are_those_of_a_file():
    assert set(re.findall(r"`([a-z_]+)`", row("[run]"))) == {"checkpoint"} | {
        name for name, (_, option) in KEYS.items() if not option.is_for_one_start
    }
