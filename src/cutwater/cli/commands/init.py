"""``cutwater init``: creates a project."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cutwater.cli.files import write_text
from cutwater.cli.screen import stdout
from cutwater.errors import Problem, RefusedError
from cutwater.spark.storage.local_paths import is_url, not_local

__all__ = ["init"]

_FLOW = '''"""The running mean of each sensor, and how many readings it had in each minute."""

from dataclasses import dataclass

import cutwater as cw


@dataclass(frozen=True)
class Reading:
    sensor: str
    at: int
    value: float


@dataclass(frozen=True)
class Mean:
    sensor: str
    at: int
    mean: float


@cw.task(initial=(0.0, 0))
def running_mean(
    state: tuple[float, int], reading: Reading
) -> tuple[tuple[float, int], list[Mean]]:
    total, count = state[0] + reading.value, state[1] + 1
    return (total, count), [Mean(reading.sensor, reading.at, total / count)]


flow = cw.Flow("means")
readings = flow.source("readings", Reading, time="at", watermark=cw.bounded_delay(5))
by_sensor = readings.key_by("sensor")
flow.sink("means", by_sensor.apply(running_mean))
flow.sink("per_minute", by_sensor.window(cw.tumbling(60)).aggregate(readings=cw.agg.count()))

# What `cutwater simulate` and `cutwater check` take as input.
inputs = {
    "readings": [
        Reading("door", 1, 4.0),
        cw.BARRIER,
        Reading("door", 2, 6.0),
        Reading("roof", 70, 20.0),
    ]
}
# The same, and a crash: everything restores its last snapshot, and reads again from there.
crashing = {"readings": [*inputs["readings"], cw.CRASH]}
'''
_TEST = '''"""The flow means what it should, and no crash is visible."""

from flow import Mean, Reading, flow

import cutwater as cw
from cutwater.testing import assert_transparent


def test_the_mean_of_a_sensor_runs_on():
    result = cw.simulate(flow, {"readings": [Reading("door", 1, 4.0), Reading("door", 2, 6.0)]})
    assert result["means"] == [Mean("door", 1, 4.0), Mean("door", 2, 5.0)]


def test_a_crash_changes_nothing():
    """CRASH: everything restores its snapshot of the last BARRIER and reads again from there."""
    one, two = Reading("door", 1, 4.0), Reading("door", 2, 6.0)
    crashed = cw.simulate(flow, {"readings": [one, cw.BARRIER, two, cw.CRASH]})
    assert crashed["means"] == cw.simulate(flow, {"readings": [one, cw.BARRIER, two]})["means"]


def test_no_crash_can_be_seen():
    """Every crash and interleaving of small inputs."""
    assert_transparent(flow, crashes=1, samples=2)
'''
_CONFIG = """# cutwater run flow.py:flow --config run.toml
# Paths are relative to this file.

[run]
checkpoint = "state"

[sources.readings]
kind = "json-lines"
path = "input"

[sinks.means]
kind = "folder"
path = "out/means"

[sinks.per_minute]
kind = "folder"
path = "out/per_minute"
"""
_INPUT = """{"sensor": "door", "at": 1, "value": 4.0}
{"sensor": "door", "at": 2, "value": 6.0}
{"sensor": "roof", "at": 3, "value": 20.0}
{"sensor": "door", "at": 65, "value": 8.0}
{"sensor": "roof", "at": 130, "value": 22.0}
"""
_FILES = {
    "flow.py": _FLOW,
    "test_flow.py": _TEST,
    "run.toml": _CONFIG,
    "input/readings.jsonl": _INPUT,
}


def init(
    folder: Annotated[Path, typer.Argument(help="A new or empty folder")],
) -> None:
    """Create a project: a flow, input for it, a test that crashes it, and a run.toml.

    Example:  cutwater init means
    """
    if is_url(folder):
        raise RefusedError(not_local("the project", folder))
    there = [name for name in _FILES if (folder / name).exists()]
    if there:
        raise RefusedError(
            Problem(
                "not-empty",
                f"{folder} has a {there[0]} already, and nothing is overwritten",
                "choose another folder",
            )
        )
    for name, text in _FILES.items():
        path = folder / name
        _make_folder(path.parent)
        write_text(path, text)
    message = [
        f"created {', '.join(_FILES)} in {folder}; continue with",
        f"  cd {shlex.quote(str(folder))}",
        "  cutwater simulate flow.py:flow               # what it means, in memory",
        "  cutwater check flow.py:flow                  # every crash of a small input",
        "  python -m pytest                             # the same in tests",
        "  cutwater run flow.py:flow --config run.toml  # on Spark; results are in out/",
    ]
    for line in message:
        stdout.print(line, soft_wrap=True)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RefusedError(
            Problem(
                "unwritable-folder",
                f"{folder} cannot be created: {error.strerror}",
                "choose a folder that you may write to",
            )
        ) from None
