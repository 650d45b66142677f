"""Jobs as bytes, for processes that cannot import the user's own modules."""

from __future__ import annotations

import pickle
import sys
from functools import lru_cache

from cutwater.errors import Problem, RefusedError
from cutwater.flow import Flow
from cutwater.flow.timely.bodies import with_bodies
from cutwater.flow.travel.pickling import pickle_by_value
from cutwater.flow.travel.unpicklable import unpicklable
from cutwater.flow.user_modules import held_by, own_modules
from cutwater.spark.job.spec import Job

__all__ = ["dump_job", "load_job"]


def dump_job(job: Job) -> bytes:
    """The job for another process, with the user's own modules by value.

    Raises `RefusedError` if part of the flow cannot be serialised.
    """
    bound = [*job.sources.values(), *job.sinks.values()]
    held = held_by([*with_bodies(job.flow.steps), *bound])
    modules = [sys.modules[name] for name in own_modules(held)]
    try:
        return pickle_by_value(job, modules)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        found = unpicklable(job.flow.steps) or [_cannot_travel(job.flow, error)]
        raise RefusedError(found) from error


@lru_cache(maxsize=4)
def load_job(data: bytes) -> Job:
    """The deserialised job; a process does it once for each job."""
    job = pickle.loads(data)
    assert isinstance(job, Job)
    return job


def _cannot_travel(flow: Flow, error: Exception) -> Problem:
    return Problem(
        "flow-cannot-travel",
        f"flow '{flow.name}' cannot be sent to Spark's processes: {error}",
        "open files, connections and locks inside the functions that use them",
    )
