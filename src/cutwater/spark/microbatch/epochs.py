"""The epoch that a task belongs to."""

from __future__ import annotations

from pyspark import TaskContext

from cutwater.errors import Problem, RefusedError

__all__ = ["epoch_of_task"]


def epoch_of_task() -> int:
    """The number of the micro-batch that the current task belongs to.

    Read from a local property that Spark sets for internal use; this is the only place that reads
    it.
    """
    context = TaskContext.get()
    value = context.getLocalProperty("streaming.sql.batchId") if context else None
    if value is None:
        raise RefusedError(
            Problem(
                "no-epoch",
                "a task does not know its epoch from Spark",
                "use a supported version of PySpark (4.3)",
            )
        )
    return int(value)
