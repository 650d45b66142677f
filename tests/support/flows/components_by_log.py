"""Connected components by a loop that feeds back through a log: one iteration per epoch."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
import graphs

import cutwater as cw

components = cw.Flow("components")
_edges = components.source("edges", graphs.Edge).flat_map(graphs.both_ways)
_body = graphs.spreading(graphs.component, "component")
components.sink("components", _edges.iterate(_body, plan="log", name="spread"))
