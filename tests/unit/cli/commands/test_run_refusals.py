"""``cutwater run`` on bad input: a sentence, exit code 2, nothing written, no JVM started."""

import os
from pathlib import Path

import pytest

import cutwater.spark.runner as runner
from cutwater.spark.storage.durable import write_json

UNKNOWN = """
import cutwater as cw
from dataclasses import dataclass

@dataclass(frozen=True)
class Click:
    user: str
    at: int

flow = cw.Flow("unknown")
clicks = flow.source("clicks", Click).map(lambda click: click).key_by(lambda click: click.user)
flow.sink("counts", clicks.aggregate(n=cw.agg.count()))
"""


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a JVM was about to start")

    monkeypatch.setattr(runner, "embedded_session", refuse)


def tree(folder):
    return sorted(
        str(path.relative_to(folder))
        for path in Path(folder).rglob("*")
        if "__pycache__" not in str(path)
    )


@pytest.fixture
def refuse(cli, write, tmp_path):
    """Run a command that must be refused; return its message."""

    def refuse(*arguments, flow=None):
        if flow:
            write(flow)
        elif not (tmp_path / "job.py").exists():
            write()
        (tmp_path / "in").mkdir(exist_ok=True)
        before = tree(tmp_path)
        done = cli("run", *arguments)
        assert (done.code, done.out) == (2, "")
        assert "Traceback" not in done.err
        assert tree(tmp_path) == before
        return done.err

    return refuse


GOOD = ["job.py:flow", "--source", "items=in", "--sink", "sums=out", "--checkpoint", "state"]


def changed(*pairs):
    arguments = list(GOOD)
    for before, after in pairs:
        arguments[arguments.index(before)] = after
    return arguments


def test_a_file_that_does_not_import(refuse):
    message = refuse(*GOOD, flow="flow = undefined\n")
    assert "[target-does-not-import] job.py cannot be imported: NameError" in message


def test_a_name_that_is_no_flow(refuse):
    message = refuse(*changed(("job.py:flow", "job.py:number")))
    assert (
        "[not-a-flow] job.py:number is a int; a flow is needed\n  hint: its flows: flow" in message
    )


def test_every_wrong_name_is_reported_at_once(refuse):
    message = refuse(*changed(("items=in", "itms=in"), ("sums=out", "tables=out")))
    for code in ("unknown-source", "unbound-source", "unknown-sink", "unbound-sink"):
        assert message.count(f"[{code}]") == 1
    assert "did you mean 'items'?" in message
    assert "--sink sums=FOLDER" in message


@pytest.mark.parametrize("binding", ["items", "=in", "items=", ""])
def test_a_binding_needs_a_name_and_a_folder(refuse, binding):
    assert "[not-a-binding]" in refuse(*changed(("items=in", binding)))


def test_a_name_is_bound_once(refuse):
    assert "[bound-twice]" in refuse(*GOOD, "--sink", "sums=other")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("items", "[not-a-binding] --idle-after is 'items'; it binds a source to seconds"),
        ("items=soon", "[not-seconds] --idle-after for 'items' is 'soon'; it is a number of"),
        ("itms=5", "[unknown-source] --idle-after names 'itms', and no source of this name is"),
        ("items=5", "[idle-without-watermark] source 'items' has idle_after=5.0, but"),
        ("items=0", "[idle-at-once] source 'items' has idle_after=0.0"),
    ],
)
def test_a_source_that_cannot_be_idle(refuse, value, message):
    assert message in refuse(*GOOD, "--idle-after", value)


@pytest.mark.parametrize("number", ["0", "3", "32"])
def test_a_number_of_partitions_that_does_not_divide_the_buckets(refuse, number):
    message = refuse(*GOOD, "--partitions", number)
    assert f"[partitions-do-not-divide] the number of partitions is {number};" in message


@pytest.mark.parametrize("source", ["gone", "job.py"])
def test_a_source_that_is_no_folder(refuse, source):
    message = refuse(*changed(("items=in", f"items={source}")))
    assert f"[missing-folder] source 'items' reads {source}, which is not a folder" in message


@pytest.mark.parametrize("place", ["file", "file/below", "file/far/below"])
def test_an_output_that_cannot_be_written(refuse, tmp_path, place):
    (tmp_path / "file").write_text("mine")
    message = refuse(*changed(("sums=out", f"sums={place}")))
    assert f"[unwritable-output] sink 'sums' cannot write to {tmp_path / place}: " in message
    assert "is a file" in message


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_checkpoint_that_cannot_be_written(refuse, tmp_path, place):
    (tmp_path / "file").write_text("mine")
    message = refuse(*changed(("state", place)))
    assert f"[unwritable-checkpoint] the checkpoint {tmp_path / place} cannot be written" in message


def test_an_output_without_permission(refuse, tmp_path, monkeypatch):
    """Root may write anywhere, so the answer of the system is made up."""
    (tmp_path / "closed").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: "closed" not in str(path))
    message = refuse(*changed(("sums=out", "sums=closed/out")))
    assert "[unwritable-output]" in message
    assert f"permission denied in {tmp_path / 'closed'}" in message


def test_two_sinks_cannot_share_a_folder(refuse, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "shared")
    flow = """
        import cutwater as cw
        flow = cw.Flow("two")
        numbers = flow.source("items", int)
        flow.sink("sums", numbers)
        flow.sink("rest", numbers)
    """
    for first, second in (("shared", "shared"), ("shared", "./x/../shared"), ("shared", "link")):
        message = refuse(
            *changed(("sums=out", f"sums={first}")), "--sink", f"rest={second}", flow=flow
        )
        assert "[shared-place] sinks 'sums' and 'rest'" in message


@pytest.mark.parametrize(
    ("option", "value"), [("--until", "tomorrow"), ("--on-bad-record", "ignore")]
)
def test_an_unknown_choice(refuse, option, value):
    assert f"'{value}'" in refuse(*GOOD, option, value)


def test_what_spark_cannot_run_is_refused_before_a_jvm_starts(refuse):
    message = refuse(*changed(("items=in", "clicks=in"), ("sums=out", "counts=out")), flow=UNKNOWN)
    assert "[unknown-type] the events that come to" in message
    assert "annotate what the function before it returns" in message


def test_a_run_without_end_cannot_be_closed(refuse):
    message = refuse(*GOOD, "--close", "--until", "stopped")
    assert "[close-of-an-endless-run] close ends the input once all is read" in message


def test_a_flow_with_problems_is_refused(refuse):
    message = refuse(
        *GOOD, flow="import cutwater as cw\nflow = cw.Flow('a')\nflow.source('x', int)\n"
    )
    assert "[no-sink]" in message


def test_an_output_of_another_checkpoint_is_refused(refuse, tmp_path):
    ledger = tmp_path / "out" / "_cutwater" / "ledger.json"
    ledger.parent.mkdir(parents=True)
    write_json(ledger, {"format": 1, "query_id": "gone", "sink": "sums", "generation": 1})
    message = refuse(*GOOD)
    assert "[another-checkpoint]" in message
    assert "--adopt keeps what is there, --fresh deletes it" in message


def test_what_is_there_cannot_be_kept_and_deleted(refuse):
    assert "[adopt-and-fresh]" in refuse(*GOOD, "--adopt", "--fresh")


def test_debug_shows_where_it_came_from(cli, write, tmp_path):
    write()
    done = cli("--debug", "run", *GOOD)
    assert done.code == 2
    assert "Traceback" in done.err
    assert "missing-folder" in done.err
