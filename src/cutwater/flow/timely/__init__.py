"""Timely dataflow (P3) in flows: notification requests before the first event, and loops.

Imports `operators` and the lower modules of `flow`. Begin with `requests`.
"""

from cutwater.flow.timely.bodies import with_bodies

__all__ = ["with_bodies"]
