"""One operator alone: which state a snapshot has while an earlier one is still being written."""

import json
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from support.flows.counting_items import counting_items
from support.spark.toy_realtime import MemorySink, toy_job

from cutwater.spark.realtime.opening import open_generation
from cutwater.spark.realtime.operator_task import OperatorTask
from cutwater.spark.realtime.readers import reader_task
from cutwater.spark.realtime.readers.reader_task import ReaderTask


class Writes:
    """Takes what is to be written, and writes it when it is told to."""

    def __init__(self, task):
        self._task = task
        self.begun = []
        self.ticks = []

    def submit(self, write, *arguments):
        future = Future()
        self.begun.append((future, write, arguments))
        self.ticks.append((arguments[0], self._task._worked))
        return future

    def finish(self):
        for future, write, arguments in self.begun:
            if not future.done():
                future.set_result(write(*arguments))

    def shutdown(self):
        """Nothing is held."""


@pytest.fixture
def task_and_rows(tmp_path, monkeypatch):
    """An operator of one partition, and the rows of ten ticks, each with one record."""
    monkeypatch.setattr(reader_task, "AHEAD", 100)  # nothing is released meanwhile
    job = replace(toy_job(counting_items(), tmp_path), query_id="q", generation=1)
    MemorySink(f"{tmp_path}/out").claim(job.claim_of("out"))
    opening = open_generation(job, partitions=1, snapshot_ticks=2, now=1000.0)
    clock = [1000.0]

    def sleep(seconds):
        clock[0] += max(seconds, 0.001)

    reader = ReaderTask(job, opening, 0, 0, lambda: clock[0], sleep)
    rows = reader.rows(lambda: False)
    sent = [next(rows)]
    for number in range(10):
        path = Path(job.sources["items"].path) / f"{number}.jsonl"
        path.write_text(json.dumps({"name": "a"}) + "\n")
        sent.append(next(rows))
    reader.close()
    return OperatorTask(job, opening, 0, 0), sent


def test_a_snapshot_has_no_tick_behind_its_own(task_and_rows):
    task, rows = task_and_rows
    task._thread = writes = Writes(task)
    for number, row in enumerate(rows):
        list(task.accept(row))
        if number % 3 == 0:  # else it is still being written when the next one is due
            writes.finish()
    assert len(writes.ticks) > 2
    assert all(worked <= tick for tick, worked in writes.ticks), writes.ticks
    task.close()
