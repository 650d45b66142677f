"""The counting flow with a step of the user's own, whose code may change from run to run."""

from collections.abc import Iterable

import cutwater as cw
from cutwater.testing.connectors import counting, traps


def arrive(event: counting.Click) -> counting.Click:
    """Pass an event on, where it is read."""
    traps.at("before-the-batch", event.position)
    return event


def flow_to(sinks: Iterable[str]) -> cw.Flow:
    """Return the flow, with sinks that all show the same."""
    return counting.flow_to(sinks, arrive)
