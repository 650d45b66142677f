"""SIGKILL on the real-time engine: an operator, a reader, and all at the end of a batch.

An onlooker reads the table all the time; `campaign_realtime` has many more kills.
"""

import random

import pytest
from support.faults.realtime_run import OPERATOR, READER
from support.faults.realtime_systems import make_run
from support.faults.realtime_tasks import batches

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_kills_lose_double_and_reorder_nothing(tmp_path, request):
    run, _ = make_run(tmp_path, request, "postgres", batch_interval=5.0)
    with run.fed():
        for part in (OPERATOR, READER):
            run.go_on()
            before = run.opened()
            run.kill_task(part, random.Random(0))
            # The same process goes on: it starts the query again by itself.
            run.wait_until(lambda before=before: run.opened() > before)
        run.go_on()
        ended = batches(run.checkpoint)
        run.wait_until(lambda: batches(run.checkpoint) > ended)
        stderr = run.kill_group()
    result = run.victim.finish()
    run.victim.check_whole()
    # Each kill is followed by a generation, or by some while Spark has no slots free yet.
    assert result["generation"] >= 4, stderr
    assert run.looks > 0
