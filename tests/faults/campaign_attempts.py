"""Attempts that fail, overlap, are run twice, or lose their process, within one run."""

import os
import signal

import pytest
from support.faults.executors import executor_of
from support.faults.pairs import PAIRS
from support.spark.standalone_cluster import standalone_cluster

from cutwater.testing.connectors.processes import kill_all, result_of, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RETRYING = "local[2,4]"
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
}


@pytest.mark.parametrize("pair", PAIRS)
def test_attempts_that_fail_after_they_wrote(make_victim, pair):
    """The next attempt may find a copy of its state in a worker that the failed one has changed."""
    victim = make_victim(pair, master=RETRYING)
    victim.feed(4)
    trap = victim.trap("fail-after-write")
    victim.finish(trap)
    assert len(list(trap.folder.glob("failed-*"))) >= 2
    victim.check_whole()


@pytest.mark.parametrize("pair", PAIRS)
def test_attempts_that_write_at_the_same_time(make_victim, pair):
    victim = make_victim(pair, master=RETRYING)
    victim.feed(4)
    trap = victim.trap("twice-at-once")
    victim.finish(trap)
    assert len(list(trap.folder.glob("twice-*-*"))) >= 2
    victim.check_whole()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_python_worker_is_killed(make_victim, pair):
    victim = make_victim(pair, master=RETRYING)
    victim.feed(4)
    run_and_kill(victim, lambda pid: pid)
    victim.check_whole()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers that Spark takes for two machines: only then it speculates."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), hosts=True) as master:
        yield master


@pytest.mark.parametrize("pair", ["jsonl-commit", "postgres-early", "kafka-early"])
def test_an_executor_is_killed(make_victim, cluster, pair):
    victim = make_victim(pair, master=cluster, conf={"spark.ui.enabled": "false"})
    victim.feed(4)
    run_and_kill(victim, executor_of)
    victim.check_whole()


@pytest.mark.parametrize("pair", ["jsonl-commit", "delta-commit", "postgres-early", "kafka-early"])
def test_an_attempt_that_is_slow_is_overtaken(make_victim, cluster, pair):
    victim = make_victim(pair, master=cluster, conf=SPECULATION)
    victim.feed(4)
    trap = victim.trap("slow-after-write")
    victim.finish(trap)
    assert trap.is_reached
    victim.check_whole()


def run_and_kill(victim, chosen):
    """Kill a process that is about to write, chosen by that of the worker; then let it finish."""
    trap = victim.trap("before-write")
    process = victim.start("caught-up", trap)
    try:
        wait_until(process, lambda: trap.is_reached)
        os.kill(chosen(trap.pid), signal.SIGKILL)
        result_of(process)
    finally:
        kill_all(process)
