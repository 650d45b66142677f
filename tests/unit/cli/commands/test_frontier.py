"""``cutwater frontier``: who holds a time, told from the checkpoint alone."""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

import cutwater as cw
from cutwater.cli.commands import frontier as shown
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.offset_log import LOG
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.kafka.source import KafkaMessages
from cutwater.spark.job.spec import Job
from cutwater.spark.storage.entry_log import EntryLog
from cutwater.spark.telemetry.topology import topology_of, write_topology

HOUR, FIVE_MINUTES = timedelta(hours=1), timedelta(minutes=5)
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
NOW = NOON + timedelta(minutes=38)


@dataclass(frozen=True)
class Click:
    page: str
    at: datetime


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(shown.time, "time", NOW.timestamp)


def clicks_by_hour(*names, delay=FIVE_MINUTES):
    flow = cw.Flow("hours")
    rule = None if delay is None else cw.bounded_delay(delay)
    streams = [flow.source(name, Click, time="at", watermark=rule) for name in names]
    clicks = streams[0] if len(streams) == 1 else streams[0].merge(*streams[1:])
    windows = clicks.key_by("page").window(cw.tumbling(HOUR))
    flow.sink("out", windows.aggregate(n=cw.agg.count(), name="hourly"))
    return flow


def paired(left: Click, right: Click) -> Click:
    return left


class Records:
    """A reader of records of which only the times are known."""

    def __init__(self, *times):
        self.all = times

    def batches(self, chunk):
        return [None]

    def times(self, run, field):
        return list(self.all)


@pytest.fixture
def make(tmp_path):
    """Make a checkpoint of one epoch, in which each source read times of partitions."""

    def make(flow, connectors, read, is_closed=False):
        job = Job(flow, connectors, {}, "", 1, 16, str(tmp_path))
        checkpoint = Checkpoint(tmp_path)
        checkpoint.save(replace(identity_of(job, 2), is_closed=is_closed))
        write_topology(tmp_path, topology_of(job))
        offsets = []
        for source in sorted(connectors):
            chunks = list(_chunks(job.watermark_tracker_of(source), read.get(source, {})))
            offsets.append(json.dumps({"entry": int(bool(chunks))}) if chunks else "-")
            log = EntryLog(tmp_path / "sources" / source, LOG, generation=1)
            if chunks:
                log.append([chunk.to_json() for chunk in chunks])
        folder = checkpoint.spark / "offsets"
        folder.mkdir(parents=True)
        (folder / "0").write_text("\n".join(["v1", "{}", *offsets]))
        return tmp_path

    return make


def _chunks(tracker, partitions):
    """Each partition is read when its newest record is made; the first epoch has them all."""
    kept = None
    for number, newest in partitions.items():
        seen = NOW.timestamp() - 2400 if number == 3 else NOW.timestamp()
        chunk = Chunk(number, 0, 10, planned=seen)
        if tracker is not None:
            kept = tracker.after(kept, Records(newest), chunk)
        yield replace(chunk, newest_after=kept)


@pytest.fixture
def with_refunds_idle(make):
    """Two sources: `refunds` is idle and follows `clicks`; had it a record before that?"""

    def made(refunds):
        flow = clicks_by_hour("clicks", "refunds")
        files = {"clicks": JsonLines("c"), "refunds": JsonLines("r", idle_after=60.0)}
        checkpoint = make(flow, files, {"clicks": {0: NOON}, "refunds": refunds})
        job = Job(flow, files, {}, "", 1, 16, str(checkpoint))
        trackers = {name: job.watermark_tracker_of(name) for name in files}
        last = Checkpoint(checkpoint).last_chunks(files)
        completed = trackers["clicks"].completed(last["clicks"].newest_after)
        before = last["refunds"] or Chunk(-1, 0, 0)
        after = trackers["refunds"].following(before.newest_after, completed)
        decision = replace(before, start=before.end, newest_after=after)
        log = EntryLog(checkpoint / "sources" / "refunds", LOG, generation=2)
        log.append([decision.to_json()])
        entries = [json.dumps({"entry": n}) for n in (1, 1 + bool(refunds))]
        (checkpoint / "spark" / "offsets" / "0").write_text("\n".join(["v1", "{}", *entries]))
        return checkpoint

    return made


def words(done):
    assert (done.code, done.err) == (0, "")
    return " ".join(done.out.split())


def test_a_partition_that_is_behind_is_named_with_a_way_out(cli, make):
    kafka = KafkaMessages("clicks", "127.0.0.1:1")
    at = {0: NOON + timedelta(minutes=30), 3: NOON - timedelta(minutes=2)}
    checkpoint = make(clicks_by_hour("clicks"), {"clicks": kafka}, {"clicks": at})
    told = words(cli("frontier", checkpoint))
    assert (
        "hourly waits for 2024-05-01 12:00:00+00:00: partition 3 of source 'clicks' is at "
        "2024-05-01 11:58:00+00:00, its last record came 40 min ago; a record of "
        "2024-05-01 12:05:00+00:00 or later would complete it (the delay is 0:05:00); "
        "--idle-after clicks=60 would release it after a minute without input"
    ) in told


def test_a_time_that_is_asked_for(cli, make):
    at = {0: NOON + timedelta(minutes=30), 3: NOON + timedelta(minutes=20)}
    kafka = KafkaMessages("clicks", "127.0.0.1:1", idle_after=300.0)
    checkpoint = make(clicks_by_hour("clicks"), {"clicks": kafka}, {"clicks": at})
    assert "hourly: 2024-05-01 12:00:00+00:00 is complete" in words(
        cli("frontier", checkpoint, "hourly", "--time", "2024-05-01T12:00:00Z")
    )
    told = words(cli("frontier", checkpoint, "hourly", "--time", "2024-05-01T12:20:00Z"))
    assert "partition 3 of source" in told
    assert "partition 0 of source" not in told
    assert "it is released after 5 min without input while others have some" in told
    held = json.loads(
        cli("frontier", checkpoint, "hourly", "--time", "2024-05-01T13:00", "--json").out
    )
    assert [h["partition"] for h in held["steps"][0]["holders"]] == ["0", "3"]


def test_a_source_without_a_record_holds_all(cli, make):
    files = {"left": JsonLines("l"), "right": JsonLines("r")}
    checkpoint = make(clicks_by_hour("left", "right"), files, {"left": {0: NOON}})
    told = words(cli("frontier", checkpoint))
    assert "hourly waits: source 'right' has had no record yet; --idle-after right=60" in told
    assert "left source 2024-05-01 11:54:59.999999+00:00 left" in told
    assert "hourly window nothing right" in told


def test_the_only_source(cli, make):
    checkpoint = make(clicks_by_hour("clicks"), {"clicks": JsonLines("c")}, {"clicks": {0: NOON}})
    told = words(cli("frontier", checkpoint, "hourly"))
    assert "a record of 2024-05-01 12:05:00+00:00 or later would complete it" in told
    assert "nothing else moves it: it is the only source" in told


def test_a_source_that_is_alone_on_its_clock_has_nobody_to_follow(cli, make):
    flow = cw.Flow("two clocks")
    rule = cw.bounded_delay(FIVE_MINUTES)
    left, right = (flow.source(n, Click, time="at", watermark=rule) for n in ("left", "right"))
    keyed = left.key_by("page"), right.key_by("page")
    flow.sink("out", keyed[0].join_clocks(keyed[1], paired, unbounded=True, name="beliefs"))
    files = {"left": JsonLines("l"), "right": JsonLines("r")}
    told = words(cli("frontier", make(flow, files, {"left": {0: NOON}}), "beliefs"))
    assert "nothing else moves it: it is the only source of its clock" in told
    assert "--idle-after" not in told


@pytest.mark.parametrize(
    ("refunds", "where"),
    [
        ({}, "has had no record yet"),
        (
            {3: NOON - HOUR},
            "is at 2024-05-01 11:00:00+00:00, its last record came 40 min ago",
        ),
    ],
    ids=["never", "before"],
)
def test_an_idle_source_follows_the_others_and_releases_none_of_them(
    cli, with_refunds_idle, refunds, where
):
    told = words(cli("frontier", with_refunds_idle(refunds), "hourly"))
    assert f"source 'refunds' {where}; it is idle and follows the other sources" in told
    assert told.count("nothing else moves it: the other sources are idle") == 1
    assert "--idle-after" not in told


def test_a_time_that_is_asked_for_of_a_source_without_a_record_that_follows_the_others(
    cli, with_refunds_idle
):
    """Its watermark has a zone, whatever was typed; it has no newest record."""
    checkpoint = with_refunds_idle({})
    for typed in ("2024-05-01T11:50:00Z", "2024-05-01T11:50:00"):
        told = words(cli("frontier", checkpoint, "--time", typed))
        assert "refunds: 2024-05-01 11:50:00+00:00 is complete" in told


def test_a_time_is_taken_as_it_is_typed_while_none_is_known(cli, make):
    checkpoint = make(clicks_by_hour("clicks"), {"clicks": JsonLines("c")}, {})
    told = words(cli("frontier", checkpoint, "hourly", "--time", "2024-05-01T12:00:00Z"))
    assert "hourly waits for 2024-05-01 12:00:00+00:00: source 'clicks' has had no" in told


def test_in_real_time_no_source_is_told_to_follow(cli, make, monkeypatch):
    """A run there refuses idle_after, so the way out would be none."""
    monkeypatch.setattr(Checkpoint, "unit", "tick")
    files = {"left": JsonLines("l"), "right": JsonLines("r")}
    checkpoint = make(clicks_by_hour("left", "right"), files, {"left": {0: NOON}})
    told = words(cli("frontier", checkpoint, "hourly"))
    assert "hourly waits: source 'right' has had no record yet; nothing else moves it: in" in told
    assert "--idle-after right" not in told


def test_a_source_without_a_watermark(cli, make):
    flow = clicks_by_hour("clicks", delay=None)
    checkpoint = make(flow, {"clicks": JsonLines("c")}, {"clicks": {0: NOON}})
    told = words(cli("frontier", checkpoint, "hourly"))
    assert "source 'clicks' has no watermark, so no time is complete before the input ends" in told


def test_a_closed_checkpoint(cli, make):
    flow = clicks_by_hour("clicks")
    checkpoint = make(flow, {"clicks": JsonLines("c")}, {"clicks": {0: NOON}}, is_closed=True)
    assert words(cli("frontier", checkpoint)) == (
        "hours: the input has ended, and every time is complete"
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("daily",), "unknown-step"),
        (("hourly", "--time", "noon"), "not-a-time"),
        (("hourly", "--time", "\x1b[2J"), "not-a-time"),
    ],
)
def test_what_there_is_not(cli, make, arguments, code):
    checkpoint = make(clicks_by_hour("clicks"), {"clicks": JsonLines("c")}, {"clicks": {0: NOON}})
    done = cli("frontier", checkpoint, *arguments)
    assert done.code == 2
    assert code in done.err


def test_no_checkpoint(cli, tmp_path):
    done = cli("frontier", tmp_path / "nothing")
    assert (done.code, "no-checkpoint" in done.err) == (2, True)
