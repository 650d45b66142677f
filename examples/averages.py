"""The incremental average of Listing 1 in "Failure Transparency in Stateful Dataflow Systems".

Readings of sensors come in, and resets; out goes the mean of each sensor since its last reset.
"""

from __future__ import annotations

from dataclasses import dataclass

import cutwater as cw


@dataclass(frozen=True)
class Reading:
    """What a sensor measured."""

    sensor: str
    at: int
    value: float


@dataclass(frozen=True)
class Reset:
    """Forget what the sensor measured so far."""

    sensor: str
    at: int


@dataclass(frozen=True)
class Average:
    """What is kept for each sensor."""

    total: float
    count: int


@dataclass(frozen=True)
class Mean:
    """What comes out."""

    sensor: str
    at: int
    mean: float


@cw.task(initial=Average(0.0, 0))
def running_average(state: Average, event: Reading | Reset) -> tuple[Average, list[Mean]]:
    """The mean so far; a reset begins anew."""
    if isinstance(event, Reset):
        return Average(0.0, 0), []
    total, count = state.total + event.value, state.count + 1
    return Average(total, count), [Mean(event.sensor, event.at, total / count)]


flow = cw.Flow("averages")
readings = flow.source("readings", Reading, time="at", watermark=cw.bounded_delay(5))
resets = flow.source("resets", Reset, time="at")
means = readings.merge(resets).key_by("sensor").apply(running_average)
flow.sink("means", means)

inputs = {
    "readings": [
        Reading("door", 1, 1.0),
        cw.BARRIER,
        Reading("door", 4, 3.0),
        Reading("roof", 4, 20.0),
        cw.BARRIER,
        Reading("door", 6, 5.0),
    ],
    "resets": [cw.BARRIER, Reset("door", 5)],
}

crashing = {
    "readings": [
        Reading("door", 1, 1.0),
        cw.BARRIER,
        Reading("door", 4, 3.0),
        cw.CRASH,
        Reading("roof", 4, 20.0),
        cw.BARRIER,
        Reading("door", 6, 5.0),
    ],
    "resets": [cw.BARRIER, Reset("door", 5), cw.crash("running_average")],
}
