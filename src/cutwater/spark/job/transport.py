"""Jobs as bytes, for processes that cannot import the user's own modules."""

from __future__ import annotations

import pickle
from functools import lru_cache

from cutwater.flow.travel.whole import dump_whole
from cutwater.spark.job.spec import Job

__all__ = ["dump_job", "load_job"]


def dump_job(job: Job) -> bytes:
    """The job for another process, with the user's own modules by value.

    Raises `RefusedError` if part of the flow cannot be serialised.
    """
    return dump_whole(job, job.flow, [*job.sources.values(), *job.sinks.values()])


@lru_cache(maxsize=4)
def load_job(data: bytes) -> Job:
    """The deserialised job; a process does it once for each job."""
    job = pickle.loads(data)
    assert isinstance(job, Job)
    return job
