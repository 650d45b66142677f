"""SIGKILL of everything while a real-time run recovers: once opened, and once in its replay."""

import pytest
from support.faults.realtime_tasks import reader_of

from cutwater.spark.realtime.opening import newest_opening
from cutwater.testing.connectors.processes import kill_all, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ASKED = {"mode": "realtime", "batch_interval": 60.0, "snapshot_interval": 30.0, "readers": 2}
"""Snapshots are rare, so that there is much to replay."""


@pytest.fixture
def victim(make_victim):
    return make_victim("postgres-early", master="local[*]", asked=ASKED)


def run_until(victim, is_seen):
    """Start, wait for something, and kill everything."""
    process = victim.start()
    try:
        wait_until(process, is_seen)
    finally:
        kill_all(process)


def opened(victim):
    opening = newest_opening(victim.checkpoint)
    return opening.generation if opening else 0


def test_kills_during_the_recovery_take_nothing_away(victim):
    victim.feed(4)
    run_until(victim, lambda: victim.rows() >= victim.fed // 2)
    victim.check_prefix()
    victim.feed(1)
    run_until(victim, lambda: opened(victim) == 2)
    run_until(victim, lambda: opened(victim) == 3 and reader_of(victim.checkpoint) is not None)
    victim.check_prefix()
    victim.feed(1)
    result = victim.finish()
    victim.check_whole()
    assert result["generation"] == 4
