"""Progress: what may still come where, and who holds it up (P3; pure).

`summaries` say what a step does to a time, and `graph` what paths do. `tracker` keeps the frontier
of every location up to date while messages come and go, by means of `places` and their `minima`.
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
