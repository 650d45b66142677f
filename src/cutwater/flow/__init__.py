"""The definition of flows: builder, validation, fusing into segments, drawing. Nothing runs here.

Imports `operators` and the leaves. Begin with `builder`, then `fusing`.
"""

from cutwater.flow.builder import Flow, Stream, WindowedStream
from cutwater.flow.fusing import Plan, Segment, plan
from cutwater.flow.tasks import Task, task
from cutwater.flow.vector_tasks import VectorisedTask, vectorised
from cutwater.flow.watermarks import BoundedDelay, bounded_delay

__all__ = [
    "BoundedDelay",
    "Flow",
    "Plan",
    "Segment",
    "Stream",
    "Task",
    "VectorisedTask",
    "WindowedStream",
    "bounded_delay",
    "plan",
    "task",
    "vectorised",
]
