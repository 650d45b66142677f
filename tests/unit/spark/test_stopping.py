"""A run that is to stop: sources plan nothing new, and say so."""

import json
import os
import shutil
from dataclasses import dataclass

import pytest

import cutwater as cw
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.exchange.envelope import ROW_SCHEMA
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import dump_job
from cutwater.spark.microbatch.source_reader import EpochDataSource
from cutwater.spark.stopping import StopRequest


@dataclass(frozen=True)
class Item:
    name: str


@pytest.fixture
def reader(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.jsonl").write_text(json.dumps({"name": "a"}) + "\n")
    flow = cw.Flow("copy")
    flow.sink("out", flow.source("items", Item))
    state = str(tmp_path / "state")
    job = Job(flow, {"items": JsonLines(str(tmp_path / "in"), 1)}, {}, "", 0, 16, state)
    source = EpochDataSource.of(dump_job(job), "items", 0)({})
    return source.streamReader(ROW_SCHEMA)


def test_nothing_is_planned_once_it_is_asked_for(reader, tmp_path):
    request = StopRequest(tmp_path / "state")
    limit = reader.getDefaultReadLimit()
    first = reader.latestOffset(reader.initialOffset(), limit)
    assert first == {"entry": 1}
    assert not request.is_made()
    request.make()
    assert not request.is_seen_by(["items"])
    assert reader.latestOffset(first, limit) == first
    assert request.is_seen_by(["items"])
    request.withdraw()
    assert not request.is_made()
    assert reader.latestOffset(first, limit) == {"entry": 2}
    request.make()
    assert not request.is_seen_by(["items"])


def test_an_epoch_that_was_planned_and_not_begun_waits(reader, tmp_path):
    """Its entry is in the log, and no offset names it yet."""
    limit = reader.getDefaultReadLimit()
    reader.latestOffset(reader.initialOffset(), limit)
    StopRequest(tmp_path / "state").make()
    assert reader.latestOffset(reader.initialOffset(), limit) == reader.initialOffset()


def test_a_source_of_a_killed_run_does_not_bring_a_request_back(tmp_path):
    """It had looked, and the next run withdrew the request before it could say that it saw it."""
    request = StopRequest(tmp_path)
    request.make()
    request.withdraw()
    request.see("items")
    assert list(tmp_path.iterdir()) == []
    assert not request.is_made()


def test_a_source_that_says_it_while_the_request_is_withdrawn(tmp_path, monkeypatch):
    request = StopRequest(tmp_path)
    request.make()
    request.see("items")
    real = os.rmdir

    def overtaken(*args, **kwargs):
        request.see("items")
        real(*args, **kwargs)

    monkeypatch.setattr(os, "rmdir", overtaken)
    request.withdraw()
    assert not request.is_made()


def test_a_request_whose_withdrawal_was_cut_off_is_withdrawn(tmp_path, monkeypatch):
    request = StopRequest(tmp_path)
    for _ in range(2):
        request.make()
        request.see("items")
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", lambda *_, **__: None)
            request.withdraw()
        assert not request.is_made()
        request.withdraw()
        assert list(tmp_path.iterdir()) == []


def test_a_request_is_made_when_it_can_be_seen(tmp_path):
    """Whoever looks in between finds nothing yet, and looks again."""
    request = StopRequest(tmp_path)
    (tmp_path / "stop").mkdir()
    assert not request.is_made()
    request.make()
    assert request.is_made()
    request.see("items")
    assert request.is_seen_by(["items"])
