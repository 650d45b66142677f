"""Stateful dataflow on Spark whose guarantees can be checked.

Define a flow once; simulate it in memory, check it against crashes and reorderings, run it
exactly-once on Structured Streaming, and explain a run with failures by one without.

The layers, each depending only on those above it::

    errors endings extras times events trace jsonable annotations codec round_trip schema ordering
    vectors _lazy _version   leaves
    progress/      could-result-in, frontiers, and who holds them; pure
    operators/     pure operators (initial, step, finish) and their composition
    flow/          the definition: builder, validation, fusing into segments, drawing
    semantics/     what a flow means, executable, without a JVM
    checking/      a model checker, and checks of operators, protocols and flows
    spark/         a flow on Structured Streaming; the only place that imports pyspark
    observers/     what sinks show, read from outside; needs no Spark
    report/        results as text and as one self-contained page
    cli/           one file per verb
    testing/       the pytest plugin, and a conformance kit for connectors

``semantics`` and ``spark`` never import each other. ``import cutwater`` needs no JVM.
"""

import typing as _typing

from cutwater._lazy import lazily as _lazily
from cutwater.errors import (
    ConnectorError,
    CutwaterError,
    FencedError,
    FlowError,
    InputError,
    RefusedError,
    ResourceError,
    RunError,
    RunFailure,
    StepError,
    TargetError,
)
from cutwater.events import Data, Watermark, monotone, productive, uncompleted
from cutwater.flow import Flow, Stream, Task, bounded_delay, task, vectorised
from cutwater.operators import aggregates as agg
from cutwater.operators.notify import Notify
from cutwater.operators.operator import Operator
from cutwater.operators.windows import session, sliding, tumbling
from cutwater.times import Antichain, Left, Product, Right, check_order, maximal
from cutwater.trace import Trace, read_trace, write_trace
from cutwater.vectors import Emit, Keys

if _typing.TYPE_CHECKING:
    from cutwater.checking import check_flow as check
    from cutwater.checking import explain
    from cutwater.semantics import BARRIER, CRASH, Simulation, crash, simulate

__getattr__ = _lazily(
    __name__,
    {
        "BARRIER": "semantics:BARRIER",
        "CRASH": "semantics:CRASH",
        "Simulation": "semantics:Simulation",
        "check": "checking:check_flow",
        "crash": "semantics:crash",
        "explain": "checking:explain",
        "simulate": "semantics:simulate",
        "__version__": "_version:__version__",
    },
)

__all__ = [
    "BARRIER",
    "CRASH",
    "Antichain",
    "ConnectorError",
    "CutwaterError",
    "Data",
    "Emit",
    "FencedError",
    "Flow",
    "FlowError",
    "InputError",
    "Keys",
    "Left",
    "Notify",
    "Operator",
    "Product",
    "RefusedError",
    "ResourceError",
    "Right",
    "RunError",
    "RunFailure",
    "Simulation",
    "StepError",
    "Stream",
    "TargetError",
    "Task",
    "Trace",
    "Watermark",
    "agg",
    "bounded_delay",
    "check",
    "check_order",
    "crash",
    "explain",
    "maximal",
    "monotone",
    "productive",
    "read_trace",
    "session",
    "simulate",
    "sliding",
    "task",
    "tumbling",
    "uncompleted",
    "vectorised",
    "write_trace",
]
