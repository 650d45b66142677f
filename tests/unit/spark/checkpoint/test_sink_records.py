"""A crash anywhere leaves ledgers that know at least what their checkpoint remembers of them."""

import contextlib
import uuid
from dataclasses import dataclass

import msgspec
import pytest
from support.connectors.sink_rows import codes
from support.spark.toy_spark import POINTS, Killed, ToySpark, make_job

import cutwater as cw
from cutwater.spark import delta_table, folder, postgres_table
from cutwater.spark.checkpoint import sink_records
from cutwater.spark.checkpoint.sink_records import (
    changed_outputs,
    note_released,
    output_problems,
    remember_sinks,
)
from cutwater.spark.connectors.base.refusals import ahead
from cutwater.spark.microbatch import writer

CRASHES = [*POINTS[:-1], "claimed", "published, not noted"]
"""Where a life ends: as Spark's do, while the sinks are claimed, and before the note."""


@dataclass(frozen=True)
class Item:
    key: str
    number: int


ITEMS = [Item("abc"[n % 3], n) for n in range(12)]


def a_flow(names):
    flow = cw.Flow("sinks")
    items = flow.source("items", Item).key_by("key")
    for name in names:
        items.sink(name)
    items.filter(lambda item: item.number % 4 == 0, name="some").sink("rare")
    return flow


@pytest.fixture
def make(tmp_path, postgres):
    """A job with a sink of each kind whose input is three epochs long."""

    def table(release):
        name = f"records_{uuid.uuid4().hex}"
        return postgres_table(table=name, dsn=postgres.dsn, release=release, create=True)

    sinks = {
        "parquet": folder(str(tmp_path / "parquet"), format="parquet"),
        "delta": delta_table(str(tmp_path / "delta"), compact_every=0),
        "early": table("early"),
        "table": table("commit"),
    }
    job = make_job(a_flow(["jsonl", *sinks]), tmp_path, sinks=sinks, max_bytes_per_epoch=100)
    (tmp_path / "checkpoint").mkdir()
    lines = b"".join(msgspec.json.encode(item) + b"\n" for item in ITEMS)
    (tmp_path / "in" / "items" / "1.jsonl").write_bytes(lines)
    return job


class Lives:
    """A checkpoint that is killed and started again; each start looks at its outputs first."""

    def __init__(self, job, root, patch):
        self.root, self._patch = root, patch
        self.toy = ToySpark(job, patch, seed=1)

    def strange(self):
        return {
            name: problems
            for name, sink in self.toy.job.sinks.items()
            if (problems := changed_outputs(self.root, name, sink, "toy"))
        }

    def live(self, crash):
        """Start, do an epoch and die."""
        assert self.strange() == {}
        self.toy.start()
        if crash == "claimed":
            return
        remember_sinks(self.root, self.toy.job)
        with self._patch.context() as patch:
            if crash == "published, not noted":
                patch.setattr(writer, "note_released", self._die)
            with contextlib.suppress(Killed):
                self.toy.run(crash)

    def _die(self, *_):
        raise Killed


@pytest.mark.parametrize("crash", CRASHES)
def test_no_crash_makes_a_start_refuse_its_own_output(make, tmp_path, monkeypatch, crash):
    lives = Lives(make, tmp_path / "checkpoint", monkeypatch)
    for each in ("never", crash, crash, "published, not noted", "never"):
        lives.live(each)
    assert lives.strange() == {}


def test_what_is_missing_in_one_sink_is_noticed_there(make, tmp_path, monkeypatch):
    lives = Lives(make, tmp_path / "checkpoint", monkeypatch)
    for _ in range(5):
        lives.live("never")
    newest = {n: s.newest_epoch(n, "toy") for n, s in lives.toy.job.sinks.items()}
    assert newest.pop("rare") < newest["jsonl"]
    assert set(newest.values()) == {newest["jsonl"]}
    note_released(lives.root, newest["jsonl"] + 1, ["delta", "early"])
    found = {name: codes(problems) for name, problems in lives.strange().items()}
    assert found == {"delta": ["output-behind"], "early": ["output-behind"]}


def test_an_epoch_without_rows_for_a_sink_is_not_asked_of_it(tmp_path):
    note_released(tmp_path, 4, ["a"])
    note_released(tmp_path, 5, [])
    note_released(tmp_path, 3, ["a", "b"])
    assert sink_records._released(tmp_path) == {"a": 4, "b": 3}


class Released:
    """A sink of a run that is active: between any two looks it plans and releases an epoch."""

    epochs = 0

    def next_epoch(self):
        self.epochs += 1
        return self.epochs

    def check(self, name, query_id, next_epoch):
        self.epochs += 1
        return [ahead(name, "somewhere", self.epochs - 1, next_epoch)]

    def newest_epoch(self, name, query_id):
        return self.epochs - 1


def test_a_ledger_of_an_active_run_is_not_ahead_of_its_checkpoint():
    run = Released()
    assert output_problems(run, "out", run, "q") == []


class Restored(Released):
    """Its checkpoint was restored from a backup."""

    def next_epoch(self):
        return 0


def test_a_ledger_that_is_ahead_of_a_checkpoint_is_refused():
    run = Restored()
    assert codes(output_problems(run, "out", run, "q")) == ["output-ahead"]
