"""What is told of an epoch, by Spark's report and our logs."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.spark.telemetry.progress import Reports
from cutwater.spark.telemetry.row_counts import EPOCHS_KEPT, note_rows, noted_rows


@dataclass(frozen=True)
class Item:
    name: str
    at: datetime


def flow():
    made = cw.Flow("windows")
    delay = cw.bounded_delay(timedelta(seconds=5))
    items = made.source("items", Item, time="at", watermark=delay).key_by("name")
    made.sink("out", items.window(cw.tumbling(timedelta(seconds=10))).aggregate(n=cw.agg.count()))
    return made


def at(second):
    return datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job of two epochs that was run without Spark; the second has a late event."""
    made = make_job(flow(), tmp_path, max_bytes_per_epoch=1)
    for number, second in enumerate((1, 30, 2)):
        line = json.dumps({"name": "a", "at": at(second).isoformat()})
        (tmp_path / "in" / "items" / str(number)).write_text(line + "\n")
    toy = ToySpark(made, monkeypatch, 1)
    toy.run_to_the_end([])
    return toy.job


def report(epoch, **more):
    return {
        "batchId": epoch,
        "durationMs": {"triggerExecution": 120, "addBatch": 80},
        "stateOperators": [
            {"memoryUsedBytes": 10, "customMetrics": {"rocksdbSstFileSize": 7}},
            {"memoryUsedBytes": 5, "customMetrics": {}},
        ],
        "sources": [
            {
                "startOffset": json.dumps({"entry": epoch}) if epoch else None,
                "endOffset": json.dumps({"entry": epoch + 1}),
            }
        ],
        **more,
    }


def test_epochs_one_by_one(job):
    reports = Reports(job, now=lambda: at(40).timestamp())
    first, second, third = (reports.of(report(epoch)) for epoch in range(3))
    assert (first.duration_ms, first.durations_ms["addBatch"]) == (120, 80)
    assert (first.state_bytes, first.state_memory_bytes) == (7, 15)
    assert [p.rows for p in (first, second, third)] == [{"out": 0}, {"out": 1}, {"out": 0}]
    assert [p.late for p in (first, second, third)] == [0, 0, 1]
    source = second.sources["items"]
    just_before = timedelta(microseconds=1)  # an event at the watermark is not late yet
    assert (source.unit, source.watermark) == ("bytes", at(25) - just_before)
    assert source.lag_seconds == pytest.approx(15.0)
    assert source.read == len('{"name": "a", "at": "2026-01-01T00:00:30+00:00"}\n')


def test_the_frontier_of_a_step_and_what_holds_it(job):
    reports = Reports(job, now=lambda: at(40).timestamp())
    second = reports.of(report(1)).frontiers["window"]
    assert second.lag_seconds == pytest.approx(15.0)
    assert [holder.label for holder in second.holders] == ["items"]
    assert second.holders[0].newest == at(30)


@pytest.mark.parametrize("sources", [[], [{"startOffset": None, "endOffset": "nonsense"}]])
def test_what_is_not_known_is_left_out(job, sources):
    told = Reports(job).of(report(1, sources=sources))
    assert all(source.read == 0 for source in told.sources.values())
    assert told.epoch == 1


def test_words_about_rows_are_bounded_and_may_be_missing(tmp_path):
    assert noted_rows(tmp_path) == {}
    for epoch in range(EPOCHS_KEPT + 5):
        note_rows(tmp_path, epoch, {"out": epoch})
    assert list(noted_rows(tmp_path)) == list(range(5, EPOCHS_KEPT + 5))
    assert noted_rows(tmp_path)[7] == {"out": 7}
    (tmp_path / "row-counts.json").write_text("nonsense")
    assert noted_rows(tmp_path) == {}
    note_rows(tmp_path / "nowhere", 1, {})
