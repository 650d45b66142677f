"""Batches of events as arrays: keys, records as columns, and calls of vectorised functions.

Imports numpy, `errors` and `annotations`. Begin with `batches`.
"""

from cutwater.vectors.batches import BatchOutcome, Emit, Layouts, run_batch
from cutwater.vectors.keys import Keys
from cutwater.vectors.layouts import Columns, Layout

__all__ = ["BatchOutcome", "Columns", "Emit", "Keys", "Layout", "Layouts", "run_batch"]
