"""The examples that `--help` shows are right: their options exist, and so do the names in them."""

import inspect
import re
import shlex

import pytest
import typer
from support.repo.package import ROOT

from cutwater.cli.app import app
from cutwater.cli.targets import load_flow
from cutwater.flow.steps import Sink, Source


def commands(command, path="cutwater"):
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{path} {name}")


PATTERN = r"Example:((?:.+\n?)+?)(?=\n|Example:|\Z)"  # to the next one, or an empty line
COMMANDS = dict(commands(typer.main.get_command(app)))
EXAMPLES = [
    (path, " ".join(found.split()))
    for path, command in COMMANDS.items()
    for found in re.findall(PATTERN, inspect.cleandoc(command.help))
]


def named(values):
    return {value.partition("=")[0] for value in values or ()}


def test_every_help_has_an_example():
    assert {path for path, _ in EXAMPLES} == set(COMMANDS)


@pytest.mark.parametrize(("path", "example"), EXAMPLES)
def test_an_example_is_right(path, example, monkeypatch):
    monkeypatch.chdir(ROOT)
    found = max((each for each in COMMANDS if example.startswith(f"{each} ")), key=len)
    assert found.startswith(path)
    arguments = shlex.split(example.removeprefix(found))
    values = COMMANDS[found].make_context(found, arguments).params  # an unknown option raises
    target = values.get("target")
    if target and target.startswith("examples/"):
        steps = load_flow(target)[0].steps
        for option, kind in (("source", Source), ("sink", Sink)):
            if values.get(option):
                names = {step.name for step in steps if isinstance(step, kind)}
                assert named(values[option]) == names


def test_an_option_that_does_not_exist_is_found():
    with pytest.raises(Exception, match="nonsense"):
        COMMANDS["cutwater graph"].make_context("graph", ["a:b", "--nonsense"])
