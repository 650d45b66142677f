"""What the real-time engine cannot run, reported before a start; how many slots it needs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from cutwater.errors import Problem, many
from cutwater.flow import steps as s
from cutwater.flow.fusing import Plan
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.spark.job.spec import Job

__all__ = [
    "SLOTS_POLL_S",
    "SLOTS_WAIT_S",
    "partitions_for",
    "slots_of",
    "slots_of_master",
    "slots_of_session",
    "too_few_slots",
    "unsupported",
    "with_early_release",
]

SLOTS_WAIT_S = 120.0
"""How long to wait for slots: executors come late, or are replaced."""
SLOTS_POLL_S = 1.0
"""How often slots are counted meanwhile."""

_OTHER = 'run it on the micro-batch engine: mode = "microbatch", which is the default'


def unsupported(
    plan: Plan, sources: Mapping[str, object], sinks: Mapping[str, SinkConnector]
) -> Iterator[Problem]:
    """Every reason why a flow with these connectors needs the other engine."""
    for step in plan.flow.steps:
        if isinstance(step, s.Iterate):
            yield _refused(f"step '{step.name}' is a loop, which it does not run", _OTHER)
    for name, source in sources.items():
        if not isinstance(source, SourceConnector):
            yield _refused(f"source '{name}' is a DataFrame, which only Spark can read", _OTHER)
        elif source.idle_after is not None:
            message = f"source '{name}' has idle_after, and in real time no source follows another"
            yield _refused(message, f"leave idle_after out, or {_OTHER}")
    for name, sink in sinks.items():
        if "early" not in sink.releases:
            yield _refused(
                f"sink '{name}' goes to {sink.location}, which publishes whole epochs only, and it "
                "releases rows tick by tick",
                f"bind it to PostgreSQL, Kafka or a function, or {_OTHER}",
            )


def with_early_release(sinks: Mapping[str, SinkConnector]) -> dict[str, SinkConnector]:
    """The sinks, set to release rows with their tick."""
    return {
        name: sink if sink.release == "early" else replace(sink, release="early")  # type: ignore[type-var]
        for name, sink in sinks.items()
    }


def slots_of(job: Job, partitions: int, readers: int) -> int:
    """How many tasks run at once: all readers, and all partitions of all levels."""
    return len(job.sources) * readers + _levels(job) * partitions


def partitions_for(job: Job, slots: int | None, readers: int) -> int:
    """The partitions of a new checkpoint: one for each core, as far as the slots go.

    Slots that are not limited (None) need not be cores: tasks mostly wait.
    """
    cores = os.cpu_count() or 1
    left = None if slots is None else slots - len(job.sources) * readers
    most = cores if left is None else min(cores, left // _levels(job))
    return max(
        (n for n in range(1, job.buckets + 1) if job.buckets % n == 0 and n <= most), default=1
    )


def too_few_slots(job: Job, partitions: int, slots: int, readers: int) -> list[Problem]:
    """Why the tasks cannot all run at once."""
    needed = slots_of(job, partitions, readers)
    if needed <= slots:
        return []
    all_readers = many(len(job.sources) * readers, "reader")
    levels = many(_levels(job), "level")
    return [
        _refused(
            f"it runs {needed} tasks at once ({all_readers}, and {levels} of stateful steps with "
            f"{many(partitions, 'partition')} each), and Spark has {many(slots, 'slot')}",
            f'give it more (master = "local[{needed}]"; slots need not be cores), or fewer '
            f"{'readers or ' if readers > 1 else ''}partitions, or {_OTHER}",
        )
    ]


def slots_of_session(session: SparkSession, needed: int) -> int:
    """The slots of a session; executors of a cluster register late, and are waited for."""
    context = session.sparkContext
    until = time.monotonic() + SLOTS_WAIT_S
    while (slots := _slots(context)) < needed and not _has_all_slots_at_once(context.master or ""):
        if time.monotonic() >= until:
            break
        time.sleep(SLOTS_POLL_S)
    return slots


def _slots(context: SparkContext) -> int:
    """What Spark counts before it runs tasks at once; a setting overrides `defaultParallelism`."""
    scala: Any = context._jsc.sc()
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def slots_of_master(master: str) -> int | None:
    """The slots that a master names; None: not limited."""
    found = re.fullmatch(r"local(?:\[(\d+)(?:,\d+)?\])?", master)
    return int(found[1] or 1) if found else None


def _has_all_slots_at_once(master: str) -> bool:
    """Are there no executors to wait for? A cluster on loopback has some, `local[2]` has not."""
    return re.match(r"local(\[|$)", master) is not None


def _levels(job: Job) -> int:
    return max(len(job.topology.levels), 1)


def _refused(message: str, hint: str) -> Problem:
    return Problem(
        "not-in-real-time", f"the real-time engine cannot run this flow: {message}", hint
    )
