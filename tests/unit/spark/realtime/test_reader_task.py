"""One reader alone: what is durable when a row leaves, and how it ends when the run stops."""

import json
import threading
from dataclasses import replace
from itertools import islice
from pathlib import Path

from support.flows.counting_items import counting_items
from support.spark.toy_counting import flow
from support.spark.toy_realtime import MemorySink, toy_job

from cutwater.spark.realtime.opening import open_generation
from cutwater.spark.realtime.plan_log import PlanLog, PlannedTick
from cutwater.spark.realtime.positions import PositionFile, ReaderPosition
from cutwater.spark.realtime.protocol import AHEAD
from cutwater.spark.realtime.readers.reader_task import ReaderTask
from cutwater.spark.realtime.wire import NO_SENDER
from cutwater.spark.stopping import StopRequest


def test_a_reader_that_stops_leads_to_a_snapshot_until_its_batch_ends(tmp_path):
    job = replace(toy_job(counting_items(), tmp_path), query_id="q", generation=1)
    MemorySink(f"{tmp_path}/out").claim(job.claim_of("out"))
    opening = open_generation(job, partitions=1, snapshot_ticks=7, now=1000.0)
    (Path(job.sources["items"].path) / "a.jsonl").write_text(json.dumps({"name": "a"}) + "\n")
    is_over = False
    sent = ReaderTask(job, opening, 0, 0, lambda: 1000.1, lambda _s: None).rows(lambda: is_over)
    rows = (row for row in sent if row.column("sender")[0].as_py() != NO_SENDER)
    planned = [row.column("tick")[0].as_py() for row in islice(rows, 2)][-1]
    request = StopRequest(job.checkpoint)
    request.make()
    last = [row.column("tick")[0].as_py() for row in islice(rows, 5)][-3:]
    assert request.is_seen_by(["items"])
    assert len(set(last)) == 1, "it asks for the same snapshot again and again"
    assert last[0] >= planned
    assert last[0] % opening.snapshot_ticks == 0
    is_over = True
    assert list(rows) == []


def test_no_row_of_a_tick_leaves_before_its_entry_is_durable(tmp_path):
    """Rule 2, with an entry that takes longer than everything else."""
    job = replace(toy_job(counting_items(), tmp_path), query_id="q", generation=1)
    MemorySink(f"{tmp_path}/out").claim(job.claim_of("out"))
    opening = open_generation(job, partitions=1, snapshot_ticks=7, now=1000.0)
    (Path(job.sources["items"].path) / "a.jsonl").write_text(json.dumps({"name": "a"}) + "\n")
    task = ReaderTask(job, opening, 0, 0, lambda: 1000.1, lambda _s: None)
    append, rows, is_decoded = task._log.append, task._shuffle_rows, threading.Event()
    durable = []

    def slowly(planned):
        assert is_decoded.wait(60)
        append(planned)
        durable.append(planned.tick)

    def decoded(planned):
        found = rows(planned)
        is_decoded.set()
        return found

    task._log.append, task._shuffle_rows = slowly, decoded
    for row in task.rows(lambda: False):
        if row.column("body")[0].as_py():
            assert durable == [row.column("tick")[0].as_py()]
            break
    task.close()


def test_a_replay_that_its_batch_cuts_off_promises_no_tick_it_has_not_sent(tmp_path):
    """Rule 7: a barrier past them would let a snapshot count that lacks their records."""
    job = replace(toy_job(flow(1, 2), tmp_path), query_id="q", generation=1)
    MemorySink(f"{tmp_path}/out").claim(job.claim_of("out"))
    opening = open_generation(job, partitions=1, snapshot_ticks=10_000, now=1000.0)
    log = PlanLog(opening.plan_path("s0"))
    ticks = range(opening.first_tick, opening.first_tick + AHEAD + 2)
    for tick in ticks:  # no sink has released any of them
        log.append(PlannedTick(tick, ()))
    log.close()
    other = PositionFile(opening.reader_position(1))
    other.write(*ReaderPosition(planned=ticks[-1] + 20))
    is_over = iter([False, False, True])
    task = ReaderTask(job, opening, 0, 0, lambda: 1000.1, lambda _s: None)
    task._shuffle_rows = lambda _planned: []
    sent = [row.to_pylist()[0] for row in task.rows(lambda: next(is_over, True))]
    other.close()
    assert [row["tick"] for row in sent if row["sender"] != NO_SENDER] == list(ticks[:AHEAD])
