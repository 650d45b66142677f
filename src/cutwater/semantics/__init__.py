"""What a flow means, executable and without a JVM."""

from cutwater.semantics.inputs import BORDER, CRASH, Crash, crash
from cutwater.semantics.simulator import Simulation, simulate

__all__ = ["BORDER", "CRASH", "Crash", "Simulation", "crash", "simulate"]
