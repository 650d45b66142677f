"""A time that is None was a bare TypeError; one that is not a number was never complete."""

from dataclasses import dataclass

import pytest

import cutwater as cw


@dataclass(frozen=True)
class Reading:
    at: float | None


@pytest.mark.parametrize("time", [None, float("nan")])
def test_times_without_an_order(time):
    flow = cw.Flow("times")
    flow.sink("out", flow.source("a", Reading, time="at").batch())
    with pytest.raises(cw.InputError, match="not-a-time"):
        cw.simulate(flow, {"a": [Reading(1.0), cw.Watermark(0.5), Reading(time)]})
