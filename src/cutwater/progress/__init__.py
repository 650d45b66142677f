"""Progress tracking: which times may still arrive where, and what holds them back (P3; pure).

`summaries` say what a step does to a time, `graph` what paths do. `tracker` maintains the frontier
of every location as messages come and go, using `locations` and their `minima`.
Imports `times` and `errors`. Begin with `tracker`.
"""

from cutwater.progress.graph import Edge, Graph, Route
from cutwater.progress.summaries import EGRESS, FEEDBACK, IDENTITY, INGRESS, Summary, add
from cutwater.progress.tracker import Holder, Progress

__all__ = [
    "EGRESS",
    "FEEDBACK",
    "IDENTITY",
    "INGRESS",
    "Edge",
    "Graph",
    "Holder",
    "Progress",
    "Route",
    "Summary",
    "add",
]
