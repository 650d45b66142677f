"""``run``: what it asks of its arguments before anything starts."""

from dataclasses import dataclass

import pytest

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError
from cutwater.spark import runner


@dataclass(frozen=True)
class Item:
    name: str


@pytest.fixture
def flow():
    made = cw.Flow("copy")
    made.sink("out", made.source("items", Item))
    return made


@pytest.fixture
def started(monkeypatch):
    """Stop where a session would be started; say with which job."""
    jobs = []

    def embedded_session(*args, **kwargs):
        raise LookupError

    def job(*args, **kwargs):
        jobs.append(real(*args, **kwargs))
        return jobs[-1]

    real = runner.Job
    monkeypatch.setattr(runner, "Job", job)
    monkeypatch.setattr(runner, "embedded_session", embedded_session)
    return jobs


def test_folders_are_absolute_for_other_processes(flow, started, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for source in ("in", cutwater_spark.json_lines("in", 5)):
        for sink in ("out", cutwater_spark.folder("out")):
            with pytest.raises(LookupError):
                cutwater_spark.run(
                    flow, sources={"items": source}, sinks={"out": sink}, checkpoint="state"
                )
            assert started[-1].sources["items"].path == str(tmp_path / "in")
            assert started[-1].sinks["out"].path == str(tmp_path / "out")
            assert started[-1].checkpoint == str(tmp_path / "state")


@pytest.mark.usefixtures("started")
def test_an_epoch_must_be_able_to_read_something(flow, tmp_path):
    with pytest.raises(RunError, match="no-progress"):
        cutwater_spark.run(
            flow,
            sources={"items": cutwater_spark.json_lines(str(tmp_path), 0)},
            sinks={"out": tmp_path / "out"},
            checkpoint=tmp_path / "state",
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[X] a\n  File x\nValueError: no\n\nJVM stacktrace:\nZError: y", "ValueError: no"),
        ("something else\nmore", "something else"),
        ("", "no reason given"),
        ("pyspark.errors.PySparkError: [A] b\n=== Streaming Query ===\nC: d", "pyspark.errors"),
    ],
)
def test_the_cause_is_the_line_that_says_what_happened(text, cause):
    assert runner._cause(text).startswith(cause)
