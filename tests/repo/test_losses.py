"""What tests of power losses lose is what was not synced, and it is lost once."""

import random
from types import SimpleNamespace

import pytest
from support.faults.power import lose_unsynced

from cutwater.spark.storage.durable import SYNC_LOG, read_json, write_file, write_json


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A checkpoint whose syncs are noted, and how to end the power for it."""
    log, checkpoint = tmp_path / "syncs", tmp_path / "checkpoint"
    monkeypatch.setenv(SYNC_LOG, str(log))
    checkpoint.mkdir()
    write_json(checkpoint / "synced-1.json", {"boot": "this boot", "epoch": 0})
    victim = SimpleNamespace(folder=tmp_path, checkpoint=checkpoint)
    return checkpoint, lambda: lose_unsynced(victim, log, random.Random(0))


def test_what_was_synced_survives_and_what_was_not_may_not(machine):
    checkpoint, lose_power = machine
    for number in range(20):
        write_file(checkpoint / f"whole-{number}", b"all of it")
        (checkpoint / f"open-{number}").write_bytes(b"all of it")
    lost = lose_power()
    assert lost
    assert all(each.startswith("open-") for each in lost)
    assert {path.read_bytes() for path in checkpoint.glob("whole-*")} == {b"all of it"}


def test_what_survived_is_on_disk_when_the_power_goes_again(machine):
    checkpoint, lose_power = machine
    for number in range(20):
        (checkpoint / f"open-{number}").write_bytes(b"all of it")
    assert lose_power()
    assert lose_power() == []
    assert read_json(checkpoint / "synced-1.json", "the note")["boot"] == "another boot"
