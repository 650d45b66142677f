"""What a flow means, executable and without a JVM: the rules of the papers, and the simulator.

Each module has a table from the paper's words to its names. Imports `flow`, `operators` and the
leaves, never `spark`. Begin with `barriers`, then `simulator`.
"""

from cutwater.semantics.inputs import BORDER, CRASH, Crash, crash
from cutwater.semantics.simulator import Simulation, simulate

__all__ = ["BORDER", "CRASH", "Crash", "Simulation", "crash", "simulate"]
