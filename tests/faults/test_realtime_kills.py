"""SIGKILL on the real-time engine: an operator, a reader, and all at the end of a batch."""

import os
import signal

import pytest
from support.faults.realtime_tasks import batches, operator_of, reader_of
from support.faults.victims import kill_all, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ASKED = {"mode": "realtime", "batch_interval": 5.0, "snapshot_interval": 0.5}


@pytest.fixture
def victim(make_victim):
    return make_victim("postgres-early", master="local[*]", asked=ASKED)


def feed_some(victim):
    """More input, while it runs; a goal that is reached when a part of it is shown."""
    victim.feed(4)
    goal = victim.fed - 50
    return lambda: victim.rows() >= goal


def kill_task(process, find):
    """Between two batches there is none for a moment."""
    wait_until(process, lambda: find() is not None)
    os.kill(find(), signal.SIGKILL)


def test_kills_lose_double_and_reorder_nothing(victim):
    process = victim.start()
    try:
        wait_until(process, feed_some(victim))
        for task_of in (operator_of, reader_of):
            generation = victim.generation()
            victim.feed(4)
            kill_task(process, lambda find=task_of: find(victim.checkpoint))
            # The same process goes on: it starts the query again by itself.
            wait_until(process, lambda before=generation: victim.generation() > before)
            wait_until(process, feed_some(victim))
            victim.check_prefix()
        ended = batches(victim.checkpoint)
        victim.feed(4)
        wait_until(process, lambda: batches(victim.checkpoint) > ended)
    finally:
        kill_all(process)
    victim.check_prefix()
    victim.feed(2)
    result = victim.finish()
    victim.check_whole()
    assert result["generation"] == 4
