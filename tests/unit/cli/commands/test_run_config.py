"""``cutwater run --config``: file and options together, how it ends, and who is told."""

import json
import urllib.request

import pytest

from cutwater import spark as cutwater_spark
from cutwater.errors import InputError, Problem, RunFailure
from cutwater.spark import RunProgress, RunResult, SinkGuarantee

CONFIG = """
[run]
checkpoint = "state"
until = "stopped"
partitions = 4
forget = ["old"]

[sources.items]
kind = "json-lines"
path = "in"
max_bytes_per_epoch = 50

[sinks.sums]
kind = "folder"
path = "out"

[spark]
"spark.driver.memory" = "1g"
"""
GUARANTEE = SinkGuarantee("sums", "exactly-once", ("`items` is replayable",), ())
RESULT = RunResult("totals", 1, 2, 2, {"sums": 3}, {}, {}, {"sums": GUARANTEE})


@pytest.fixture
def asked(write, tmp_path, monkeypatch):
    """What `run` is asked for; it tells of one epoch and ends well."""
    write()
    (tmp_path / "conf" / "in").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "conf" / "run.toml").write_text(CONFIG)
    calls = []

    def run(flow, **settings):
        calls.append(settings)
        settings["notify"](str(GUARANTEE))
        settings["on_progress"](RunProgress(0, 100, rows={"sums": 3}))
        return RESULT

    monkeypatch.setattr(cutwater_spark, "run", run)
    return calls


def test_a_file_says_it_all(cli, asked, tmp_path):
    done = cli("run", "job.py:flow", "--config", "conf/run.toml")
    assert done.code == 0
    assert "sums: exactly-once: `items` is replayable" in done.err
    (arguments,) = asked
    assert arguments["checkpoint"] == str(tmp_path / "conf" / "state")
    assert (arguments["until"], arguments["partitions"], arguments["forget"]) == (
        "stopped",
        4,
        ["old"],
    )
    assert "master" not in arguments
    assert arguments["sources"]["items"].path == str(tmp_path / "conf" / "in")
    assert arguments["sources"]["items"].max_bytes_per_epoch == 50
    assert arguments["sinks"]["sums"].path == str(tmp_path / "conf" / "out")
    assert arguments["settings"] == {"spark.driver.memory": "1g"}


def test_a_source_of_the_file_may_be_idle(cli, asked, tmp_path):
    """`cutwater frontier` suggests the option for sources of any kind, such as a Kafka topic."""
    done = cli("run", "job.py:flow", "--config", "conf/run.toml", "--idle-after", "items=60")
    assert (done.code, done.err.count("error")) == (0, 0)
    (arguments,) = asked
    assert arguments["sources"]["items"].idle_after == 60
    assert arguments["sources"]["items"].max_bytes_per_epoch == 50


def test_options_win(cli, asked):
    done = cli(
        "run", "job.py:flow", "--config", "conf/run.toml", "--until", "caught-up",
        "--checkpoint", "elsewhere", "--source", "items=other", "--sink", "sums=there",
        "--master", "local[1]", "--close", "--require", "exactly-once",
    )  # fmt: skip
    assert done.code == 0
    (arguments,) = asked
    assert (arguments["until"], str(arguments["checkpoint"])) == ("caught-up", "elsewhere")
    assert (arguments["master"], arguments["close"], arguments["require"]) == (
        "local[1]",
        True,
        "exactly-once",
    )
    assert arguments["sources"]["items"].path == "other"
    assert arguments["sinks"]["sums"] == "there"
    assert arguments["partitions"] == 4


def test_limits_are_those_of_each_source_of_the_command_line(cli, asked):
    limits = {
        "max_bytes_per_epoch": 7,
        "max_rows_per_epoch": 5,
        "max_files_per_epoch": 3,
        "max_record_bytes": 2,
    }
    options = [(f"--{name.replace('_', '-')}", str(value)) for name, value in limits.items()]
    given = [word for option in options for word in option]
    assert cli(*GOOD, "--source", "items=other", "--hung-after", "60", *given).code == 0
    (arguments,) = asked
    assert arguments["hung_after"] == 60
    assert {name: getattr(arguments["sources"]["items"], name) for name in limits} == limits


def test_everything_that_is_wrong_at_once(cli, asked, tmp_path):
    path = tmp_path / "conf" / "run.toml"
    path.write_text(CONFIG.replace("[run]", "[run]\nutil = 3").replace('"folder"', '"foldr"'))
    done = cli("run", "job.py:flow", "--config", path)
    assert (done.code, done.out, asked) == (2, "", [])
    assert f"error: [unknown-setting] {path}:3: 'util' is not a setting" in done.err
    assert f"[unknown-kind] {path}:15: sink 'sums' has the unknown kind 'foldr'" in done.err


def test_no_checkpoint_is_a_sentence(cli, asked):
    done = cli("run", "job.py:flow", "--source", "items=other", "--sink", "sums=out")
    assert (done.code, asked) == (2, [])
    assert "[no-checkpoint-given]" in done.err


GOOD = ["run", "job.py:flow", "--config", "conf/run.toml"]


@pytest.mark.parametrize(
    ("error", "code"), [(RunFailure, 1), (InputError, 2), (KeyboardInterrupt, 130)]
)
def test_exit_codes(cli, asked, monkeypatch, tmp_path, error, code):
    def run(flow, **settings):
        raise error() if error is KeyboardInterrupt else error(Problem("why", "it is a canary"))

    monkeypatch.setattr(cutwater_spark, "run", run)
    done = cli(*GOOD, "--log", "run.jsonl")
    assert done.code == code
    assert "Traceback" not in done.err
    events = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [one["event"] for one in events] == ["started"] + ["failed"] * (code < 3)
    assert "canary" not in (tmp_path / "run.jsonl").read_text()


def test_a_run_that_was_stopped_says_so(cli, asked, monkeypatch):
    from dataclasses import replace

    stopped = replace(RESULT, is_stopped=True)
    monkeypatch.setattr(cutwater_spark, "run", lambda flow, **settings: stopped)
    done = cli(*GOOD)
    assert done.code == 0
    assert "stopped, as requested; the next run continues from here" in done.out
    assert json.loads(cli(*GOOD, "--json").out)["is_stopped"]


def test_whoever_watches_is_reported(cli, asked, monkeypatch, tmp_path):
    scraped = []

    def run(flow, **settings):
        settings["on_progress"](RunProgress(0, 100, rows={"sums": 3}))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            scraped.append(answer.read().decode())
        return RESULT

    monkeypatch.setattr(cutwater_spark, "run", run)
    port = _free_port()
    done = cli(*GOOD, "--metrics-port", port, "--log", "run.jsonl", "--json")
    assert done.code == 0
    assert f"metrics: http://127.0.0.1:{port}/metrics" in done.err
    assert 'cutwater_rows_total{flow="totals",sink="sums"} 3' in scraped[0]
    lines = (tmp_path / "run.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert events == ["started", "epoch", "finished"]
    assert json.loads(done.out)["guarantees"]["sums"]["kind"] == "exactly-once"


def _free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
