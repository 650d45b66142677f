"""One declaration of what a run can be asked for: arguments, keys of a file, options."""

import inspect
import typing

import pytest
from support.connectors.sink_rows import codes

from cutwater.cli.commands.run import run as command
from cutwater.errors import RefusedError
from cutwater.spark import RunOptions, run
from cutwater.spark.config import _of_a_file
from cutwater.spark.options import ProcessOptions, declared, settled

DEFAULTS = {name: option.default for name, (_, option) in declared(RunOptions).items()}


def refused(**given):
    with pytest.raises(RefusedError) as caught:
        settled(given)
    return caught.value


def test_what_nobody_asks_for_is_as_it_is_by_default():
    assert settled({}) == DEFAULTS
    assert settled({"until": "stopped"}) == {**DEFAULTS, "until": "stopped"}


def test_python_takes_what_is_declared():
    options = inspect.signature(run, eval_str=True).parameters["options"].annotation
    assert typing.get_args(options) == (RunOptions,)


def test_the_command_line_takes_what_is_declared():
    options = {*declared(RunOptions), *declared(ProcessOptions)}
    assert options <= set(inspect.signature(command).parameters)


def test_a_file_has_no_decisions_about_one_start():
    missing = set(declared(RunOptions)) - set(_of_a_file(RunOptions))
    assert missing == {"adopt", "fresh", "accept_gap"}


def test_a_name_that_there_is_not_is_refused_with_one_that_is_near():
    error = refused(untill="stopped")
    assert codes(error.problems) == ["unknown-setting"]
    assert "did you mean 'until'?" in str(error)


@pytest.mark.parametrize(
    ("name", "value"),
    [("mode", "real"), ("until", None), ("on_bad_record", "keep"), ("require", "at-most-once")],
)
def test_a_choice_is_one_of_those_there_are(name, value):
    error = refused(**{name: value})
    assert codes(error.problems) == ["unknown-choice"]
    assert f"{name} is {value!r}" in str(error)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hung_after", 0),
        ("hung_after", float("nan")),
        ("hung_after", "soon"),
        ("hung_after", True),
        ("snapshot_interval", -1.0),
        ("batch_interval", 4.9),
    ],
)
def test_a_time_is_long_enough(name, value):
    assert codes(refused(**{name: value}).problems) == ["not-seconds"]


def test_the_shortest_times_are_long_enough():
    assert settled({"batch_interval": 5, "hung_after": 0.1})["batch_interval"] == 5


def test_everything_that_is_wrong_is_reported_at_once():
    error = refused(adopt=True, fresh=True, mode="fast", hung_after=0)
    assert codes(error.problems) == ["unknown-choice", "not-seconds", "adopt-and-fresh"]
