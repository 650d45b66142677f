"""Stateful dataflow on Spark whose guarantees can be checked.

Define a flow once; simulate it in memory, run it exactly-once on Structured Streaming.

The layers, each depending only on those above it::

    errors  times  events  records  codec  order    leaves
    operators/     pure operators (initial, step, finish) and their composition
    flow/          the definition: builder, validation, fusing into segments, drawing
    semantics/     what a flow means, executable, without a JVM
    checking/      properties of operators, checked
    spark/         a flow on Structured Streaming; the only place that imports pyspark
    cli/           one file per verb

``semantics`` and ``spark`` never import each other. ``import cutwater`` needs no JVM.
"""

from cutwater.errors import CutwaterError, FlowError, InputError, RunError, TargetError
from cutwater.events import Data, Watermark, monotone, productive, uncompleted
from cutwater.flow import Flow, Stream, Task, bounded_delay, task
from cutwater.operators import aggregates as agg
from cutwater.operators.notify import Notify
from cutwater.operators.windows import session, sliding, tumbling
from cutwater.semantics import BORDER, Simulation, simulate
from cutwater.times import Antichain, Left, Product, Right, check_order, maximal

__version__ = "0.1.0"

__all__ = [
    "BORDER",
    "Antichain",
    "CutwaterError",
    "Data",
    "Flow",
    "FlowError",
    "InputError",
    "Left",
    "Notify",
    "Product",
    "Right",
    "RunError",
    "Simulation",
    "Stream",
    "TargetError",
    "Task",
    "Watermark",
    "agg",
    "bounded_delay",
    "check_order",
    "maximal",
    "monotone",
    "productive",
    "session",
    "simulate",
    "sliding",
    "task",
    "tumbling",
    "uncompleted",
]
