"""``cutwater checkpoint``: what a checkpoint holds, and moving its state."""

import json
from pathlib import Path

import pytest
from support.connectors.file_logs import FileLog

import cutwater as cw
from cutwater.cli.targets import load_flow
from cutwater.spark.checkpoint import rescale as rescaling
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.job.spec import Job


@pytest.fixture
def place(write, tmp_path, monkeypatch):
    """A checkpoint of one epoch over two files; no JVM is to start."""

    def embedded_session(*args, **kwargs):
        raise AssertionError("a JVM was about to start")

    monkeypatch.setattr(rescaling, "embedded_session", embedded_session)
    write()
    flow, _ = load_flow("job.py:flow")
    assert isinstance(flow, cw.Flow)
    made = Checkpoint(tmp_path / "state")
    made.create()
    made.save(identity_of(Job(flow, {"items": JsonLines("in")}, {}, "", 0, 16, ""), 2))
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / name).write_text("12\n")
    log = FileLog(tmp_path / "in", made.root / "sources" / "items")
    log.take(100)
    for name in ("offsets", "commits"):
        (made.spark / name).mkdir(parents=True)
        (made.spark / name / "0").write_text('v1\n{}\n{"entry": 1}')
    return made


def files(place):
    return {p: p.read_bytes() for p in place.root.rglob("*") if p.is_file()}


def test_show(cli, place):
    before = files(place)
    done = cli("checkpoint", "show", place.root)
    assert (done.code, done.err) == (0, "")
    assert [line.rstrip() for line in done.out.splitlines()] == [
        "totals: 0 runs; the next epoch is 1",
        "16 buckets on 2 partitions",
        "steps that keep a state: total",
        "source  kind        read              newest",
        "items   JSON lines  2 files, 6 bytes",
    ]
    assert files(place) == before


def test_show_as_data(cli, place):
    found = json.loads(cli("checkpoint", "show", place.root, "--json").out)
    items = found.pop("sources").pop("items")
    assert items["read"] == {"files": 2, "bytes": 6}
    assert (items["kind"], items["newest_time"]) == ("JSON lines", None)
    assert Path(items["newest_piece"]).name == "b"
    assert found == {
        "flow": "totals",
        "generation": 0,
        "next_epoch": 1,
        "is_mid_epoch": False,
        "buckets": 16,
        "partitions": 2,
        "rescaling_to": None,
        "steps": ["total"],
        "is_closed": False,
        "loop": None,
        "ticks": None,
    }


def test_what_is_not_finished_is_reported(cli, place):
    (place.spark / "commits" / "0").unlink()
    assert "\nepoch 0 is not finished\n" in cli("checkpoint", "show", place.root).out
    done = cli("checkpoint", "rescale", place.root, "--partitions", "4")
    assert (done.code, done.out) == (2, "")
    assert "error: [unfinished-epoch] epoch 0 of the checkpoint" in done.err


@pytest.mark.parametrize("command", [("show",), ("rescale", "--partitions", "4")])
def test_no_checkpoint(cli, tmp_path, command):
    done = cli("checkpoint", *command, tmp_path / "nowhere")
    assert (done.code, done.out) == (2, "")
    assert "error: [no-checkpoint] there is no checkpoint in " in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_does_not_divide_the_buckets(cli, place):
    before = files(place)
    done = cli("checkpoint", "rescale", place.root, "--partitions", "3")
    assert (done.code, done.out) == (2, "")
    assert "error: [partitions-do-not-divide] the number of partitions is 3;" in done.err
    assert files(place) == before


@pytest.mark.spark
@pytest.mark.slow
def test_a_state_that_is_moved_between_two_runs(server, write, tmp_path):
    write()
    (tmp_path / "in").mkdir()
    state = tmp_path / "state"

    def run(name, *more):
        (tmp_path / "in" / name).write_text('{"name": "a", "size": 2}\n')
        return server(
            "run", tmp_path / "job.py:flow", "--source", f"items={tmp_path / 'in'}",
            "--sink", f"sums={tmp_path / 'out'}", "--checkpoint", state, *more,
        )  # fmt: skip

    assert run("1", "--partitions", "4").code == 0
    done = server("checkpoint", "rescale", state, "--partitions", "1")
    assert (done.code, done.out) == (0, "totals: 4 partitions before, 1 now\n")
    refused = run("2", "--partitions", "4")
    assert refused.code == 2
    assert "cutwater checkpoint rescale CHECKPOINT --partitions 4" in refused.err
    assert run("2").code == 0
    parts = sorted((tmp_path / "out").glob("epoch=*/*.jsonl"))
    assert [part.parent.name for part in parts] == ["epoch=0", "epoch=2"]
    assert [json.loads(part.read_text())["size"] for part in parts] == [2, 4]
    assert json.loads(server("checkpoint", "show", state, "--json").out)["partitions"] == 1


def test_verify(cli, place, tmp_path):
    before = files(place)
    done = cli("checkpoint", "verify", place.root)
    assert (done.code, done.out) == (0, "totals: 4 files checked; intact\n")
    assert files(place) == before
    (place.spark / "offsets" / "0").write_text("")
    done = cli("checkpoint", "verify", place.root)
    assert done.code == 1
    assert f"[damaged-file] Spark's offset log {place.spark / 'offsets' / '0'} is dam" in done.out
    assert "hint: restore the whole checkpoint from a backup" in done.out
    assert json.loads(cli("checkpoint", "verify", place.root, "--json").out)["problems"]
    done = cli("checkpoint", "verify", tmp_path / "none")
    assert (done.code, "[no-checkpoint]" in done.err) == (2, True)


def test_state_of_what_is_not_there(cli, place):
    done = cli("state", place.root, "totl")
    assert (done.code, done.out) == (2, "")
    assert "[unknown-step] the checkpoint holds no state of a step 'totl'" in done.err
    done = cli("state", place.root, "total", "--epoch", "7")
    assert "has no state of epoch 7; it has those of epochs 0 to 0" in done.err


def test_state_is_a_table(cli, place, monkeypatch):
    from cutwater import spark as cutwater_spark

    asked = []

    def read_state(checkpoint, step, **more):
        asked.append(more)
        rows = [{"key": "a", "state": 3}, {"key": "b", "state": {"n": [1]}}]
        return cutwater_spark.StepState("totals", step, 4, rows, is_whole=False)

    monkeypatch.setattr(cutwater_spark, "read_state", read_state)
    done = cli("state", place.root, "total", "--key", "7", "--key", '["a", 1]', "--limit", "2")
    assert done.code == 0
    assert [line.rstrip() for line in done.out.splitlines()] == [
        "totals: 'total' at the end of epoch 4",
        "key  state",
        "a    3",
        'b    {"n": [1]}',
    ]
    assert "there are more than 2" in done.err
    assert asked[0]["keys"] == ["7", 7, '["a", 1]', ("a", 1)]
    assert json.loads(cli("state", place.root, "total", "--json").out)["epoch"] == 4
