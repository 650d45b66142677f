"""What people look at: a run with crashes, and under it the failure-free run that explains it.

=====================================  =====================================================
`cutwater.report.timeline`             the data of a report, apart from how it is shown
`cutwater.report.html`                 the report as one file for a browser
`cutwater.report.text`                 the report as text for a terminal
=====================================  =====================================================
"""

from cutwater.report.timeline import Timeline, timeline_of

__all__ = ["Timeline", "timeline_of"]
