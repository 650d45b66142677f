"""What the command line shows of a checkpoint of the real-time engine; no JVM is started."""

import json

import pytest
from support.spark.toy_checkpoints import Checkpointed

from cutwater.spark.checkpoint import state_reader


@pytest.fixture
def place(tmp_path, monkeypatch):
    def no_session(*args, **kwargs):
        raise AssertionError("a JVM was about to start")

    monkeypatch.setattr(state_reader, "embedded_session", no_session)
    sales = Checkpointed(tmp_path, partitions=2, snapshot_ticks=3)
    sales.sell(0, [("a", 1, 1), ("b", 2, 2), ("a", 3, 5)])
    sales.run()
    return sales.checkpoint


def files(place):
    return {p: p.read_bytes() for p in place.root.rglob("*") if p.is_file()}


def test_show_state_frontier_and_verify_write_nothing(cli, place):
    before = files(place)
    for command in (
        ("checkpoint", "show"),
        ("checkpoint", "verify"),
        ("frontier",),
        ("state",),
    ):
        more = ["sold"] if command == ("state",) else []
        done = cli(*command, place.root, *more)
        assert (done.code, done.err.partition(" ")[0]) in {
            (0, ""),
            (0, "verifying"),
            (0, "reading"),
        }
    assert files(place) == before


def test_show(cli, place):
    lines = cli("checkpoint", "show", place.root).out.splitlines()
    assert lines[0].startswith("sales: 1 run on the real-time engine; the next tick is ")
    assert lines[1] == "16 buckets on 2 partitions"
    assert lines[2].startswith("the newest snapshot is of tick ")
    assert lines[2].endswith("a start replays 0 ticks with records after it")


def test_state(cli, place):
    found = json.loads(cli("state", place.root, "sold", "--key", "a", "--json").out)
    assert (found["unit"], found["rows"]) == ("tick", [{"key": "a", "state": 4}])
    assert "'sold' at the end of tick" in cli("state", place.root, "sold").out


def test_frontier(cli, place):
    found = json.loads(cli("frontier", place.root, "--json").out)
    assert (found["unit"], {step["completed"] for step in found["steps"]}) == ("tick", {2})
    assert cli("frontier", place.root).out.startswith("sales: tick ")


def test_verify_ends_with_1_if_something_is_damaged(cli, place):
    path = next(place.root.glob("realtime/*/snapshots/*/*.delta"))
    path.write_bytes(path.read_bytes()[:-1])
    done = cli("checkpoint", "verify", place.root)
    assert done.code == 1
    assert "[damaged-snapshot]" in done.out
