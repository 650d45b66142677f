"""What the supervisor takes for the death of a process, and what for a failure of a task."""

import errno
from dataclasses import replace
from types import SimpleNamespace

import pytest
from pyspark.errors import StreamingQueryException
from support.spark.toy_counting import flow
from support.spark.toy_realtime import toy_job

from cutwater.errors import FencedError, Problem, RefusedError, RunFailure
from cutwater.spark.realtime import drive as drives
from cutwater.spark.realtime.drive import RealTimeDrive, is_death
from cutwater.spark.realtime.opening import open_generation
from cutwater.spark.realtime.requirements import SLOTS_WAIT_S
from cutwater.spark.storage.durable import write_json


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        "Lost task 0.0 in stage 2.0: java.io.EOFException",
        # what sends to it, or hears from it, may be seen first
        "SparkException: Connection to streaming shuffle writer 3 closed before termination",
        "Lost task 0.0 in stage 2.0: io.netty.channel.StacklessClosedChannelException",
    ],
)
def test_a_process_that_died(text):
    assert is_death(text)


@pytest.mark.parametrize("text", ["ValueError: no such key", "java.lang.OutOfMemoryError"])
def test_what_would_happen_again(text):
    assert not is_death(text)


def test_a_task_tells_why_it_failed_whatever_spark_sees_first(tmp_path):
    job = toy_job(flow(), tmp_path)
    opening = open_generation(job, partitions=1, snapshot_ticks=7, now=1000.0)
    assert opening.failure() is None
    for its_neighbour_is_gone in (EOFError(), BrokenPipeError(errno.EPIPE, "Broken pipe")):
        with pytest.raises(type(its_neighbour_is_gone)), opening.noting_failure():
            raise its_neighbour_is_gone
        assert opening.failure() is None
    for number, code in ((errno.ENOSPC, "no-room"), (errno.EACCES, "machine-failed")):
        with pytest.raises(OSError, match="it is so"), opening.noting_failure():
            raise OSError(number, "it is so")
        assert [problem.code for problem in opening.failure().problems] == [code]
    with pytest.raises(RefusedError), opening.noting_failure():
        raise RefusedError(Problem("not-deterministic", "a tick has other rows", "none"))
    assert [problem.code for problem in opening.failure().problems] == ["not-deterministic"]
    again = replace(job, generation=1)
    again = open_generation(again, partitions=1, snapshot_ticks=7, now=1000.0)
    assert again.failure() is None


NO_SLOTS = (
    "[CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT] Cannot run the pipelined stage group: it needs 3 "
    "concurrent task slots to run all its stages together, but only 0 are currently free."
)


class Cluster:
    """A run on a cluster whose executors come late; nobody waits for real."""

    def __init__(self, monkeypatch, refusals):
        self.refusals, self.messages, self.claims, self.slept = refusals, [], 0, 0.0
        self.watchdog = drives.Watchdog(1e6, lambda: None)
        self.job = SimpleNamespace(is_ending=False, generation=1, checkpoint="/tmp/none")
        self.is_to_stop = False
        monkeypatch.setattr(drives.time, "sleep", self._sleep)
        monkeypatch.setattr(drives, "replace", lambda job, is_ending: job)
        monkeypatch.setattr(RealTimeDrive, "_open", lambda _self: self._opening())
        monkeypatch.setattr(RealTimeDrive, "_run", lambda _self, _opening, _until: self._run())

    def drive(self):
        return RealTimeDrive(
            None, self.job, SimpleNamespace(root=self.job.checkpoint),
            claim_again=self._claim, on_progress=print, is_to_stop=lambda: self.is_to_stop,
            notify=self.messages.append, watchdog=self.watchdog,
            snapshot_s=1.0, batch_s=60.0, readers=1,
        )  # fmt: skip

    def _opening(self):
        snapshots = SimpleNamespace(common=lambda: -1)
        return SimpleNamespace(snapshots=snapshots, failure=lambda: None, slots=3)

    def _claim(self):
        self.claims += 1
        return self.job

    def _sleep(self, seconds):
        self.slept += seconds

    def _run(self):
        if self.refusals:
            self.refusals -= 1
            raise StreamingQueryException(NO_SLOTS)


def test_executors_that_come_late_are_waited_for(monkeypatch):
    """At the start, and after one died: a few seconds later there are enough slots again."""
    cluster = Cluster(monkeypatch, refusals=8)
    cluster.drive().run("stopped")
    assert cluster.refusals == 0
    assert cluster.claims == 8  # each attempt is a generation: nothing of the last one goes on
    assert len(cluster.messages) == 1
    assert "3 tasks at once" in cluster.messages[0]


def test_slots_that_never_come_end_the_run_with_a_sentence(monkeypatch):
    cluster = Cluster(monkeypatch, refusals=10_000)
    with pytest.raises(RunFailure, match="too-few-slots") as failed:
        cluster.drive().run("stopped")
    assert "3 tasks at once" in str(failed.value)
    assert cluster.slept >= SLOTS_WAIT_S


def test_a_run_that_waits_for_slots_can_be_stopped(monkeypatch):
    cluster = Cluster(monkeypatch, refusals=10_000)
    cluster._sleep = lambda _seconds: setattr(cluster, "is_to_stop", True)
    monkeypatch.setattr(drives.time, "sleep", cluster._sleep)
    drive = cluster.drive()
    drive.run("stopped")
    assert drive.is_stopped


def overtaken(job, root):
    """A checkpoint that the next generation of a job has taken over."""
    write_json(root / "cutwater.json", {"generation": job.generation + 1})
    job.checkpoint = str(root)


def test_a_zombie_whose_tasks_died_does_not_claim_again(monkeypatch, tmp_path):
    """It would fence its successor, which is right where it is."""
    cluster = Cluster(monkeypatch, refusals=1)
    overtaken(cluster.job, tmp_path)
    with pytest.raises(FencedError, match="generation 2 has taken the checkpoint"):
        cluster.drive().run("stopped")
    assert cluster.claims == 0
