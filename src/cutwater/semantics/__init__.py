"""What a flow means, executable and without a JVM."""

from cutwater.semantics.inputs import BORDER
from cutwater.semantics.simulator import Simulation, simulate

__all__ = ["BORDER", "Simulation", "simulate"]
