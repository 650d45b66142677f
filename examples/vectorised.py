"""Readings of sensors that are far from the mean so far of their sensor: a bucket at a time.

The task is a function on arrays. In memory it is called with one event at a time, on Spark with all
events that a bucket of keys has in an epoch; it means the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import cutwater as cw


@dataclass(frozen=True)
class Reading:
    """What a sensor measured."""

    sensor: str
    at: int
    value: float


@dataclass(frozen=True)
class Total:
    """What is kept for each sensor."""

    count: int
    sum: float


@dataclass(frozen=True)
class Alarm:
    """What comes out."""

    sensor: str
    at: int
    above_mean: float


@cw.vectorised(initial=Total(0, 0.0))
def far_above_mean(state: Total, event: Reading, keys: cw.Keys) -> tuple[Total, cw.Emit[Alarm]]:
    """Readings at least 10 above the mean of their sensor, this reading included."""
    count = keys.running_count(start=state.count)
    total = keys.running_sum(event.value, start=state.sum)
    above = event.value - total / count
    alarms = Alarm(event.sensor, event.at, above)
    return Total(keys.last(count), keys.last(total)), cw.Emit(above >= 10, alarms)


@cw.vectorised(initial=0.0)
def smoothed(level: float, event: Reading, keys: cw.Keys) -> tuple[float, float]:
    """Exponential smoothing: a recurrence, in rounds over all sensors at once."""
    level, levels = level.copy(), np.empty(len(keys))
    for now in keys.rounds():
        of = keys.of[now]
        level[of] = levels[now] = 0.5 * level[of] + 0.5 * event.value[now]
    return level, levels


flow = cw.Flow("alarms")
readings = flow.source("readings", Reading, time="at", watermark=cw.bounded_delay(5))
by_sensor = readings.key_by("sensor")
flow.sink("alarms", by_sensor.apply(far_above_mean))
flow.sink("levels", by_sensor.apply(smoothed))

inputs = {
    "readings": [
        Reading("door", 1, 4.0),
        Reading("roof", 2, 20.0),
        cw.BARRIER,
        Reading("door", 3, 28.0),
        Reading("roof", 3, 24.0),
        Reading("door", 4, 7.0),
    ],
}
