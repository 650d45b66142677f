"""An idle source: when it follows, whom, and that the decision is read and not made again."""

import datetime as dt
import json
import os
from dataclasses import dataclass, replace

import pytest
from support.connectors.file_logs import FileLog
from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater.errors import RunError, extract
from cutwater.flow.fusing import plan
from cutwater.spark.connectors.base.watermarks import WatermarkTracker
from cutwater.spark.exchange.envelope import ROW_SCHEMA, WATERMARK
from cutwater.spark.job.transport import dump_job
from cutwater.spark.microbatch.source_reader import EpochDataSource


@dataclass(frozen=True)
class Item:
    at: int


@dataclass(frozen=True)
class Exact:
    at: float


@dataclass(frozen=True)
class Dated:
    at: dt.datetime


def tracker(tp, delay):
    flow = cw.Flow("times")
    flow.sink("out", flow.source("items", tp, time="at", watermark=cw.bounded_delay(delay)))
    (segment,) = plan(flow).segments
    return WatermarkTracker(segment.source, segment.input_type)


# The watermark tracker


def test_a_mark_counts_until_the_sources_own_rule_passes_it():
    tracked = tracker(Item, 2)
    followed = tracked.following(10, 50)
    assert (tracked.completed(10), tracked.completed(followed)) == (7, 50)
    later = tracked.newest(followed, [40, 52])
    assert tracked.completed(later) == 50
    assert tracked.newest(later, [60]) == 60
    assert tracked.are_late([Item(50), Item(51)], 50) == [True, False]


@pytest.mark.parametrize(("newest", "mark"), [(10, 7), (10, 3), (10, float("-inf"))])
def test_a_mark_that_completes_nothing_more_is_not_followed(newest, mark):
    assert tracker(Item, 2).following(newest, mark) is None


def test_a_source_without_input_has_only_the_mark():
    tracked = tracker(Item, 2)
    followed = tracked.following(None, 5)
    assert tracked.completed(followed) == 5
    assert tracked.following(followed, 5) is None
    assert tracked.completed(tracked.following(followed, 6)) == 6


def test_marks_of_another_kind_are_rounded_down_or_left():
    assert tracker(Item, 2).completed(tracker(Item, 2).following(None, 4.75)) == 4
    assert tracker(Exact, 0.5).completed(tracker(Exact, 0.5).following(None, 4)) == 4.0
    assert tracker(Exact, 0.5).following(None, 2**53 + 3) is None  # a float would be above it
    assert tracker(Dated, dt.timedelta(1)).following(None, 4) is None


def test_a_mark_is_kept_in_a_form_that_json_has():
    tracked = tracker(Dated, dt.timedelta(seconds=1))
    mark = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    kept = json.loads(json.dumps(tracked.following("2023-01-01T00:00:00Z", mark)))
    assert tracked.completed(kept) == mark


# The log


def test_a_decision_is_an_entry_that_reads_nothing(tmp_path):
    (tmp_path / "in").mkdir()

    def opened():
        return FileLog(tmp_path / "in", tmp_path / "log", tracker(Item, 2), lambda: 7.0, Item)

    log = opened()
    assert log.follow(5) == 1
    assert log.follow(5) == log.follow(4) == 1
    (tmp_path / "in" / "a").write_text('{"at": 20}\n')
    assert log.take(100) == 2
    log = opened()
    assert (log.follow(17), log.follow(30)) == (2, 3)
    assert log.quiet_since() == opened().quiet_since() == 7.0
    (tmp_path / "in" / "b").write_text('{"at": 25}\n{"at": 31}\n')
    assert log.take(100) == 4
    entries = [opened().read(number) for number in range(1, 5)]
    assert [chunk.is_decision for (chunk,) in entries] == [True, False, True, False]
    assert [chunk.number for (chunk,) in entries] == [-1, 0, 0, 1]
    completed = [tracker(Item, 2).completed(chunk.newest_before) for (chunk,) in entries]
    assert completed == [None, 5, 17, 30]


# The reader


class Sources:
    """Readers of some sources that meet in windows, on a clock that stands until it is set."""

    def __init__(self, root, monkeypatch):
        self._root, self.time = root, 0.0
        monkeypatch.setattr(EpochDataSource, "now", staticmethod(lambda: self.time))

    def start(self, idle, *, is_endless=True, apart=()):
        """A new life; `idle` says after how long, for each source."""
        flow = cw.Flow("quiet")
        streams = {
            name: flow.source(name, Item, time="at", watermark=cw.bounded_delay(0))
            for name in [*idle, *apart]
        }
        first, *others = (streams[name] for name in idle)
        flow.sink("together", first.merge(*others).batch() if others else first.batch())
        for name in apart:
            flow.sink(f"{name} apart", streams[name].batch(name=f"{name} batch"))
        job = make_job(flow, self._root, max_bytes_per_epoch=1 << 20)
        limits = {**idle, **dict.fromkeys(apart)}
        job = replace(
            job, sources={n: replace(s, idle_after=limits[n]) for n, s in job.sources.items()}
        )
        self.readers = {
            name: EpochDataSource.of(dump_job(job), name, 0)({}).streamReader(ROW_SCHEMA)
            for name in job.sources
        }
        for name in job.sources:
            log_that_began_at_zero(self._root / "checkpoint" / "sources" / name)
        if not is_endless:
            for reader in self.readers.values():
                reader.prepareForTriggerAvailableNow()

    def put(self, source, *times):
        folder = self._root / "in" / source
        number = len(list(folder.iterdir()))
        text = "".join(json.dumps({"at": at}) + "\n" for at in times)
        (folder / f"{number:03}").write_text(text)

    def latest(self, source, entry):
        reader = self.readers[source]
        return reader.latestOffset({"entry": entry}, reader.getDefaultReadLimit())["entry"]

    def mark(self, source, entry):
        """What the buckets are told by an entry."""
        reader = self.readers[source]
        (part,) = reader.partitions({"entry": entry - 1}, {"entry": entry})
        kinds = {row["kind"] for batch in reader.read(part) for row in batch.to_pylist()}
        assert (WATERMARK in kinds) == (part.watermark is not None)
        log = FileLog(self._root / "in" / source, self._root / "checkpoint" / "sources" / source)
        (*_, last) = log.read(entry)
        return None if part.watermark is None else tracker(Item, 0).completed(last.newest_after)


def log_that_began_at_zero(log):
    log.mkdir(parents=True, exist_ok=True)
    (log / "began").touch()
    os.utime(log / "began", (0, 0))


@pytest.fixture
def sources(tmp_path, monkeypatch):
    return Sources(tmp_path, monkeypatch)


def test_a_source_that_was_quiet_for_long_enough_follows_the_other(sources):
    sources.start({"a": 10, "b": None})
    sources.put("a", 5)
    sources.put("b", 30)
    assert (sources.latest("a", 0), sources.latest("b", 0)) == (1, 1)
    sources.time = 9.9
    assert sources.latest("a", 1) == 1
    sources.time = 10
    assert sources.latest("a", 1) == 2
    assert (sources.mark("a", 1), sources.mark("a", 2)) == (4, 29)
    assert sources.latest("a", 2) == 2
    sources.put("b", 50)
    assert sources.latest("b", 1) == 2
    assert sources.latest("a", 2) == 3
    assert sources.mark("a", 3) == 49


def test_an_empty_file_is_no_input(sources):
    sources.start({"a": 10, "b": None})
    sources.put("a")
    sources.put("b", 30)
    assert (sources.latest("a", 0), sources.latest("b", 0)) == (0, 1)
    sources.time = 10
    assert sources.latest("a", 0) == 1
    assert sources.mark("a", 1) == 29


def test_new_input_ends_it_and_the_time_begins_anew(sources):
    sources.start({"a": 10, "b": None})
    sources.put("b", 30)
    assert sources.latest("b", 0) == 1
    sources.time = 10
    assert sources.latest("a", 0) == 1
    sources.put("a", 29, 40)
    sources.time = 15
    assert sources.latest("a", 1) == 2
    sources.put("b", 90)
    assert sources.latest("b", 1) == 2
    sources.time = 24
    assert sources.latest("a", 2) == 2
    sources.time = 25
    assert sources.latest("a", 2) == 3
    assert [sources.mark("a", entry) for entry in (1, 2, 3)] == [29, 39, 89]


def test_a_decision_that_no_offset_names_is_the_next_epoch(sources):
    """A crash came between the two; whatever the others do meanwhile, it stays as it was."""
    sources.start({"a": 10, "b": None})
    sources.put("b", 30)
    sources.latest("b", 0)
    sources.time = 10
    assert sources.latest("a", 0) == 1
    sources.start({"a": None, "b": None})
    sources.put("b", 80)
    sources.latest("b", 1)
    sources.put("a", 1)
    assert sources.latest("a", 0) == 1
    assert sources.mark("a", 1) == 29


def test_an_endless_run_gives_a_source_its_time_to_begin(sources):
    sources.start({"a": 10, "b": None})
    sources.put("a", 5)
    sources.put("b", 30)
    sources.latest("a", 0)
    sources.latest("b", 0)
    sources.time = 1000
    sources.start({"a": 10, "b": None})
    sources.readers["a"].initialOffset()
    assert sources.latest("a", 1) == 1
    sources.time = 1010
    assert sources.latest("a", 1) == 2


def test_a_run_that_catches_up_goes_by_when_the_last_input_came(sources):
    """Before this run or in an earlier one: it does not wait."""
    sources.start({"a": 10, "b": None}, is_endless=False)
    sources.put("a", 5)
    sources.start({"a": 10, "b": None}, is_endless=False)
    sources.latest("a", 0)
    sources.time = 9
    sources.put("b", 30)
    sources.start({"a": 10, "b": None}, is_endless=False)
    sources.latest("b", 0)
    assert sources.latest("a", 1) == 1
    sources.time = 10
    sources.put("a", 31)
    assert sources.latest("a", 1) == 1  # there is input, though not for this run
    sources.start({"a": 10, "b": None}, is_endless=False)
    assert sources.latest("a", 1) == 2
    assert sources.mark("a", 2) == 30


def test_it_follows_the_least_of_those_it_meets_and_that_are_not_idle(sources):
    sources.start({"a": 10, "b": 10, "c": None}, apart=["d"])
    for name, time in (("a", 10), ("b", 5), ("c", 20), ("d", 1)):
        sources.put(name, time)
        assert sources.latest(name, 0) == 1
    sources.time = 10
    assert (sources.latest("b", 1), sources.latest("a", 1)) == (2, 2)
    assert (sources.mark("b", 2), sources.mark("a", 2)) == (19, 19)
    sources.put("c", 70)
    sources.put("a", 40)
    assert (sources.latest("c", 1), sources.latest("a", 2)) == (2, 3)
    assert sources.latest("b", 2) == 3
    assert sources.mark("b", 3) == 39


def test_where_all_are_idle_they_follow_the_one_that_is_furthest(sources):
    """Two that stand at the same place would wait for one another otherwise."""
    sources.start({"a": 10, "b": 10, "c": 10})
    for name, time in (("a", 5), ("b", 5), ("c", 20)):
        sources.put(name, time)
        assert sources.latest(name, 0) == 1
    sources.time = 10
    assert [sources.latest(name, 1) for name in "abc"] == [2, 2, 1]
    assert (sources.mark("a", 2), sources.mark("b", 2)) == (19, 19)
    assert [sources.latest("a", 2), sources.latest("b", 2), sources.latest("c", 1)] == [2, 2, 1]


def test_there_is_nothing_to_follow_where_another_has_completed_nothing(sources):
    sources.start({"a": 10, "b": None, "c": None})
    sources.put("b", 30)
    sources.latest("b", 0)
    sources.time = 10
    assert sources.latest("a", 0) == 0


def test_one_source_has_nobody_to_follow(sources):
    sources.start({"a": 10})
    sources.put("a", 5)
    sources.latest("a", 0)
    sources.time = 100
    assert sources.latest("a", 1) == 1


def test_times_that_do_not_compare_are_a_sentence(tmp_path, monkeypatch):
    flow = cw.Flow("mixed")
    rule = cw.bounded_delay(dt.timedelta(0))
    a, b, c = (flow.source(name, Dated, time="at", watermark=rule) for name in "abc")
    flow.sink("out", a.merge(b, c).batch())
    monkeypatch.setattr(EpochDataSource, "now", staticmethod(lambda: 1e12))
    job = make_job(flow, tmp_path)
    job = replace(job, sources={n: replace(s, idle_after=1) for n, s in job.sources.items()})
    (tmp_path / "in" / "b" / "1").write_text('{"at": "2024-01-01T00:00:00"}\n')
    (tmp_path / "in" / "c" / "1").write_text('{"at": "2024-01-01T00:00:00Z"}\n')
    readers = {
        name: EpochDataSource.of(dump_job(job), name, 0)({}).streamReader(ROW_SCHEMA)
        for name in job.sources
    }
    for reader in readers.values():
        reader.prepareForTriggerAvailableNow()
    for name in "bc":
        assert readers[name].latestOffset({"entry": 0}, None) == {"entry": 1}
    with pytest.raises(RuntimeError) as failed:
        readers["a"].latestOffset({"entry": 0}, None)
    (problem,) = extract(str(failed.value)).problems
    assert problem.code == "times-do-not-compare"
    assert problem.message.startswith("source 'a', which is idle, would follow streams whose times")


# What may be asked for


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_time_that_is_none_is_refused(tmp_path, seconds):
    assert "[idle-at-once] source 'items' has idle_after=" in refusal(tmp_path, seconds, rule=True)


def test_a_source_without_a_watermark_is_refused(tmp_path):
    message = refusal(tmp_path, 5, rule=False)
    assert "[idle-without-watermark] source 'items' has idle_after=5, but" in message
    assert "watermark=bounded_delay(DELAY)" in message


def refusal(tmp_path, seconds, *, rule):
    from cutwater import spark as cutwater_spark

    flow = cw.Flow("idle")
    settings = {"watermark": cw.bounded_delay(2)} if rule else {}
    flow.sink("out", flow.source("items", Item, time="at", **settings))
    with pytest.raises(RunError) as refused:
        cutwater_spark.run(
            flow,
            sources={"items": cutwater_spark.json_lines(str(tmp_path), idle_after=seconds)},
            sinks={"out": tmp_path / "out"},
            checkpoint=tmp_path / "state",
        )
    assert list(tmp_path.iterdir()) == []
    return str(refused.value)
