"""Pure operators over event streams, and their composition (P4).

One operator per file; the laws of each are in its docstring and are property tests in
``tests/laws/``. A few are core operators, the others are visibly composed of them:
``join = batch → accumulate → map_values → flatten → union``. Imports the leaves. Begin with
`operator`, then `batch`.
"""

from cutwater.operators.accumulate import accumulate, incr_batch
from cutwater.operators.batch import batch
from cutwater.operators.bulk import bulk
from cutwater.operators.compose import compose, identity
from cutwater.operators.equivalence import eq_op
from cutwater.operators.flatten import flatten
from cutwater.operators.histogram import histogram
from cutwater.operators.histogram_paths import histogram_paths
from cutwater.operators.histogram_total import histogram_total
from cutwater.operators.join import join
from cutwater.operators.map_values import map_values
from cutwater.operators.operator import Ended, Operator, Produced, fproduce, produce, produce_1
from cutwater.operators.skip import skip
from cutwater.operators.union import union

__all__ = [
    "Ended",
    "Operator",
    "Produced",
    "accumulate",
    "batch",
    "bulk",
    "compose",
    "eq_op",
    "flatten",
    "fproduce",
    "histogram",
    "histogram_paths",
    "histogram_total",
    "identity",
    "incr_batch",
    "join",
    "map_values",
    "produce",
    "produce_1",
    "skip",
    "union",
]
