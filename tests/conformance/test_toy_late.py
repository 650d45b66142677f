"""What becomes of late events on our runtime is what their source says, as in the simulation."""

import json
from dataclasses import dataclass

import pytest
from support.spark.agreement import inputs_of, parts_of
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.errors import extract


@dataclass(frozen=True)
class Reading:
    sensor: str
    at: int


LINES = [Reading("a", 10), Reading("a", 20), Reading("late", 1), Reading("a", 21)]


def run(tmp_path, policy):
    flow = cw.Flow("late")
    readings = flow.source(
        "readings", Reading, time="at", watermark=cw.bounded_delay(2), late=policy
    )
    flow.sink("out", readings)
    job = make_job(flow, tmp_path, max_bytes_per_epoch=1)
    folder = tmp_path / "in" / "readings"
    for number, reading in enumerate(LINES):
        line = json.dumps({"sensor": reading.sensor, "at": reading.at})
        (folder / f"{number}.jsonl").write_text(line + "\n")
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, seed=0)
        toy.run_to_the_end([])
        inputs = inputs_of(flow, tmp_path / "checkpoint", toy.offsets)
    return cw.simulate(flow, inputs), tmp_path


def kept(root):
    parts = parts_of(root / "late" / "readings")
    return [json.loads(line) for epoch in parts.values() for part in epoch for line in part]


def test_kept_events_are_beside_the_output_as_they_came(tmp_path):
    simulated, root = run(tmp_path, "keep")
    assert simulated.late == {"readings": 1}
    assert [Reading(**line) for line in kept(root)] == simulated.late_events["readings"]


def test_of_dropped_events_only_the_place_is_noted(tmp_path):
    simulated, root = run(tmp_path, "drop")
    assert simulated.late == {"readings": 1}
    assert kept(root) == [{"file": str(root / "in" / "readings" / "2.jsonl"), "byte": 0}]


def test_a_late_event_ends_the_run_and_is_named_by_file_and_line(tmp_path):
    with pytest.raises(RuntimeError) as failed:
        run(tmp_path, "fail")
    error = extract(str(failed.value))
    assert error.problems[0].code == "late-event"
    assert "2.jsonl:1 is a late event of source 'readings'" in error.problems[0].message
