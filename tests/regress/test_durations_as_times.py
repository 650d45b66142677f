"""A timedelta passed validation as a time for windows and delays, and failed in the run."""

import datetime as dt
from dataclasses import dataclass

import cutwater as cw

MINUTE = dt.timedelta(minutes=1)


@dataclass(frozen=True)
class Lap:
    at: dt.timedelta


def test_durations_as_times():
    flow = cw.Flow("laps")
    laps = flow.source("laps", Lap, time="at", watermark=cw.bounded_delay(MINUTE))
    flow.sink("out", laps.window(cw.tumbling(2 * MINUTE)).aggregate(n=cw.agg.count()))
    inputs = {"laps": [Lap(MINUTE), Lap(3 * MINUTE), cw.BARRIER, Lap(2 * MINUTE)]}
    result = cw.simulate(flow, inputs).by_epoch("out")
    assert [[(r.window_start, r.n) for r in epoch] for epoch in result] == [
        [(0 * MINUTE, 1)],
        [],
        [(2 * MINUTE, 2)],
    ]
