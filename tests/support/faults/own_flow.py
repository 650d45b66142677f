"""The counting flow with a step of the user's own, whose code may change from run to run."""

from collections.abc import Iterable

import cutwater as cw
from cutwater.testing.connectors import counting, traps

OTHER = "more"
"""The second source."""


def arrive(event: counting.Click) -> counting.Click:
    """Pass an event on, where it is read."""
    traps.at("before-the-batch", event.position)
    return event


def flow_to(sinks: Iterable[str]) -> cw.Flow:
    """Return the flow, with sinks that all show the same."""
    return counting.flow_to(sinks, arrive)


@cw.task(initial=0)
def pass_on(seen: int, row: counting.Counted) -> tuple[int, list[counting.Counted]]:
    """Pass a row on, one for each that was seen."""
    assert row.number == seen + 1, row
    return row.number, [row]


def two_sources_to(sinks: Iterable[str]) -> cw.Flow:
    """Return the flow with two sources and two levels; each key comes from one of the sources."""
    flow = cw.Flow("counting")
    first, other = (flow.source(name, counting.Click) for name in (counting.SOURCE, OTHER))
    counted = first.merge(other).map(arrive).key_by("key").apply(counting.count_clicks)
    passed = counted.key_by("key").apply(pass_on)
    for name in sinks:
        flow.sink(name, passed)
    return flow
