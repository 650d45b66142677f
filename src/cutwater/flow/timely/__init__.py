"""What flows have of timely dataflow (P3): requests before the first event, and loops.

Imports `operators`, and of `flow` what comes before it. Begin with `requests`.
"""

from cutwater.flow.timely.bodies import with_bodies

__all__ = ["with_bodies"]
