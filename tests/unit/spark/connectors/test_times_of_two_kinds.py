"""A time that cannot be compared with those before it makes a bad record, like any other."""

import datetime as dt
import json
from dataclasses import dataclass, replace

import pytest
from support.connectors.hostile_records import lines_in
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.errors import extract
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.spark import folder
from cutwater.spark.connectors.base.side_outputs import bad_records_sink
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.base.watermarks import (
    PartitionWatermarkTracker,
    WatermarkTracker,
    misplaced,
)
from cutwater.spark.connectors.files.json_source import JsonLines

MINUTE = dt.timedelta(minutes=1)


@dataclass(frozen=True)
class Reading:
    id: int
    at: dt.datetime


def job_of(tmp_path, **settings):
    flow = cw.Flow("times")
    timed = flow.source("items", Reading, time="at", watermark=cw.bounded_delay(MINUTE))
    flow.sink("out", timed.batch())
    source = JsonLines(str(tmp_path / "in" / "items"), 1 << 20)
    job = make_job(flow, tmp_path, sources={"items": source}, **settings)
    side_output = {bad_records_sink("items"): folder(str(tmp_path / "bad"))}
    return replace(job, sinks={**job.sinks, **side_output})


def put(tmp_path, number, times):
    lines = [json.dumps({"id": 10 * number + n, "at": at}) for n, at in enumerate(times)]
    (tmp_path / "in" / "items" / f"{number}.jsonl").write_text("\n".join(lines) + "\n")


def run(job, seed=1, **settings):
    with pytest.MonkeyPatch.context() as patch:
        ToySpark(job, patch, seed=seed).run_to_the_end([], **settings)


AWARE = [f"2024-01-01T00:0{n}:00Z" for n in range(5)]
NAIVE = "2024-01-01T00:02:30"


@pytest.mark.parametrize("before", [0, 1], ids=["in the first epoch", "in a later one"])
@pytest.mark.parametrize("place", [1, 2, 4])
def test_a_naive_time_among_aware_ones_is_a_dead_letter(tmp_path, before, place):
    job = job_of(tmp_path, skip_bad_records=True)
    times = [*AWARE[:place], NAIVE, *AWARE[place:]]
    if before:
        put(tmp_path, 0, AWARE[:1])
        run(job)
    put(tmp_path, 1, times)
    run(job, close=True)
    (bad,) = lines_in(tmp_path / "bad")
    assert (bad["file"], bad["line"]) == (str(tmp_path / "in" / "items" / "1.jsonl"), place + 1)
    assert bad["error"] == (
        "its time, 2024-01-01 00:02:30, has no time zone, and the times before it have one"
    )
    shown = json.dumps(lines_in(tmp_path / "out" / "out"))
    assert shown.count('"id"') == before + len(AWARE)


def test_after_aware_times_a_file_may_begin_with_a_naive_one(tmp_path):
    job = job_of(tmp_path, skip_bad_records=True)
    put(tmp_path, 0, AWARE[:1])
    put(tmp_path, 1, [NAIVE, *AWARE[1:]])
    run(job, close=True)
    assert [bad["line"] for bad in lines_in(tmp_path / "bad")] == [1]


def test_without_skipping_it_ends_the_run_and_is_named_by_file_and_line(tmp_path):
    job = job_of(tmp_path)
    put(tmp_path, 0, [NAIVE, AWARE[0]])
    with pytest.raises(RuntimeError) as failed:
        run(job)
    (problem,) = extract(str(failed.value)).problems
    assert problem.code == "bad-record"
    assert problem.message.startswith(
        f"{tmp_path / 'in' / 'items' / '0.jsonl'}:2 is not a record of source 'items': its time, "
        "2024-01-01 00:00:00+00:00, has a time zone, and the times before it have none"
    )


def test_times_of_other_kinds_are_told_apart_too():
    assert misplaced("3", 4) == (
        "its time, 3, cannot be compared with 4, a time of this source: they are str and int"
    )
    assert misplaced(3.5, 4) == misplaced(3, None) == ""


class Times:
    """As much of a reader as a watermark tracker asks for."""

    def batches(self, _chunk):
        yield self

    def __init__(self, *times):
        self.found = list(times)

    def times(self, _run, _field):
        return self.found


def tracker(kind, *more):
    flow = cw.Flow("watermark")
    flow.source("items", Reading, time="at", watermark=cw.bounded_delay(MINUTE))
    return kind(flow.steps[0], StreamType(Reading, dt.datetime), *more)


AT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
ODD = AT.replace(tzinfo=None) + dt.timedelta(1)


@pytest.mark.parametrize(
    "kind", [(WatermarkTracker,), (PartitionWatermarkTracker, None)], ids=["whole", "partitions"]
)
def test_a_watermark_goes_by_the_kind_of_its_first_time(kind):
    found = tracker(*kind)
    kept = found.after(None, Times(AT, ODD, AT + MINUTE), Chunk(0, 0, 3, planned=1.0))
    moment = dt.timedelta(microseconds=1)
    assert found.completed(kept) == AT - moment
    for times in ([ODD], [ODD, AT + 2 * MINUTE], [AT + 2 * MINUTE, ODD]):
        later = found.after(kept, Times(*times), Chunk(0, 3, 5, planned=2.0))
        assert found.completed(later) == (AT if times == [ODD] else AT + MINUTE) - moment


@pytest.mark.parametrize(
    "kind", [(WatermarkTracker,), (PartitionWatermarkTracker, None)], ids=["whole", "partitions"]
)
def test_a_watermark_that_followed_others_goes_by_their_kind(kind):
    found = tracker(*kind)
    kept = found.following(None, AT)
    assert found.completed(found.after(kept, Times(ODD), Chunk(0, 0, 1, planned=1.0))) == AT
