"""Executable semantics of flows, without a JVM: the rules of the papers, and the simulator.

Each module maps the paper's terms to its names in a table. Imports `flow`, `operators` and the
leaves, never `spark`. Begin with `barriers`, then `simulator`.
"""

from cutwater.semantics.inputs import BARRIER, CRASH, Crash, crash
from cutwater.semantics.simulator import Simulation, simulate

__all__ = ["BARRIER", "CRASH", "Crash", "Simulation", "crash", "simulate"]
