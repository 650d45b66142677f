"""What the real-time engine cannot run, said before anything starts; how many slots it needs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from cutwater.errors import Problem, many
from cutwater.flow import steps as s
from cutwater.flow.fusing import Plan
from cutwater.spark.connectors.base.sink import Sink
from cutwater.spark.connectors.base.source import Feed
from cutwater.spark.job.spec import Job

__all__ = [
    "early",
    "partitions_for",
    "slots_of",
    "slots_of_master",
    "too_few_slots",
    "unsupported",
]

_OTHER = 'run it on the micro-batch engine: mode = "microbatch", which is the default'


def unsupported(
    plan: Plan, sources: Mapping[str, object], sinks: Mapping[str, Sink]
) -> Iterator[Problem]:
    """Why a flow that is bound so needs the other engine; all reasons."""
    for step in plan.flow.steps:
        if isinstance(step, s.Iterate):
            yield _refused(f"step '{step.name}' is a loop, which it does not run", _OTHER)
    for name, source in sources.items():
        if not isinstance(source, Feed):
            yield _refused(f"source '{name}' is a DataFrame, which only Spark can read", _OTHER)
        elif source.idle_after is not None:
            said = f"source '{name}' has idle_after, and its readers do not follow one another"
            yield _refused(said, f"leave idle_after out, or {_OTHER}")
    for name, sink in sinks.items():
        if "early" not in sink.releases:
            yield _refused(
                f"sink '{name}' goes to {sink.place}, which shows whole epochs only, and it "
                "releases rows tick by tick",
                f"bind it to PostgreSQL, Kafka or a function, or {_OTHER}",
            )


def early(sinks: Mapping[str, Sink]) -> dict[str, Sink]:
    """The sinks, all of which release rows with their tick."""
    return {
        name: sink if sink.release == "early" else replace(sink, release="early")  # type: ignore[type-var]
        for name, sink in sinks.items()
    }


def slots_of(job: Job, partitions: int) -> int:
    """How many tasks run at once: all readers, and all partitions of all levels."""
    return len(job.sources) + _levels(job) * partitions


def partitions_for(job: Job, slots: int | None) -> int:
    """The partitions of a new checkpoint: one for each core, as far as the slots go.

    Slots that are not limited (None) need not be cores: tasks mostly wait.
    """
    cores = os.cpu_count() or 1
    most = cores if slots is None else min(cores, (slots - len(job.sources)) // _levels(job))
    return max(
        (n for n in range(1, job.buckets + 1) if job.buckets % n == 0 and n <= most), default=1
    )


def too_few_slots(job: Job, partitions: int, slots: int) -> list[Problem]:
    """Why the tasks cannot all run at once."""
    needed = slots_of(job, partitions)
    if needed <= slots:
        return []
    readers, levels = many(len(job.sources), "reader"), many(_levels(job), "level")
    return [
        _refused(
            f"it runs {needed} tasks at once ({readers}, and {levels} of stateful steps with "
            f"{many(partitions, 'partition')} each), and Spark has {many(slots, 'slot')}",
            f'give it more (master = "local[{needed}]"; slots need not be cores), or fewer '
            f"partitions, or {_OTHER}",
        )
    ]


def slots_of_master(master: str) -> int | None:
    """The slots that a master names; None: as many as there are."""
    found = re.fullmatch(r"local(?:\[(\d+)(?:,\d+)?\])?", master)
    return int(found[1] or 1) if found else None


def _levels(job: Job) -> int:
    return max(len(job.levels), 1)


def _refused(said: str, hint: str) -> Problem:
    return Problem("not-in-real-time", f"the real-time engine cannot run this flow: {said}", hint)
