"""What people look at: a run with crashes, and under it the failure-free run that explains it.

`timeline` is the data of a report, apart from how it is shown by `html` and `text`;
`guarantee_page` and `guarantee_text` show what a flow guarantees. Imports `checking`, `flow` and
the leaves. Begin with `timeline`.
"""

from cutwater.report.timeline import Timeline, timeline_of

__all__ = ["Timeline", "timeline_of"]
