"""Reports for people: a run with crashes, and below it the failure-free run that explains it.

`timeline` is the data of a report, which `html` and `text` render; `guarantee_page` and
`guarantee_text` render what a flow guarantees. Imports `checking`, `flow` and the leaves.
Begin with `timeline`.
"""

from cutwater.report.timeline import Timeline, timeline_of

__all__ = ["Timeline", "timeline_of"]
