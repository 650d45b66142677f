"""Bounds were computed by repeated subtraction: events were lost and windows fell in two."""

from dataclasses import dataclass
from decimal import Decimal

import cutwater as cw


@dataclass(frozen=True)
class Reading:
    at: float


def counts(window, times):
    flow = cw.Flow("floats")
    flow.sink("out", flow.source("a", float).window(window).aggregate(n=cw.agg.count()))
    return [
        record.n for record in cw.simulate(flow, {"a": [cw.Data(t, 0.0) for t in times]})["out"]
    ]


def test_no_event_is_lost():
    assert sum(counts(cw.tumbling(0.1), [0.5, 0.6, 0.9, 1.0])) == 4


def test_no_window_falls_in_two():
    """Ten windows each, eight of them the same."""
    assert sorted(counts(cw.sliding(1.0, every=0.1), [0.95, 0.75])) == [1] * 4 + [2] * 8


def test_a_negative_decimal_is_in_one_window():
    assert counts(cw.tumbling(10), [Decimal(-5)]) == [1]


def test_a_float_written_as_an_int_does_not_end_its_window_early():
    flow = cw.Flow("whole")
    windows = (
        flow.source("a", Reading, time="at").window(cw.tumbling(10)).aggregate(n=cw.agg.count())
    )
    flow.sink("out", windows)
    events = [Reading(3), cw.Watermark(9.2), Reading(9.5)]
    assert [record.n for record in cw.simulate(flow, {"a": events})["out"]] == [2]
