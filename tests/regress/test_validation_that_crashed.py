"""A window, an aggregate or a watermark of another type was an AttributeError, not a sentence."""

import datetime as dt
from dataclasses import dataclass

import pytest

import cutwater as cw


@dataclass(frozen=True)
class Reading:
    at: dt.datetime


def readings(flow, **options):
    return flow.source("a", Reading, time="at", **options)


@pytest.mark.parametrize(
    ("code", "build"),
    [
        ("not-an-aggregate", lambda flow: readings(flow).aggregate(n=cw.agg.count)),
        ("not-a-window", lambda flow: readings(flow).window(10).aggregate(n=cw.agg.count())),
        (
            "not-a-length",
            lambda flow: readings(flow).window(cw.tumbling(None)).aggregate(n=cw.agg.count()),
        ),
        (
            "not-a-length",
            lambda flow: readings(flow).window(cw.tumbling(60)).aggregate(n=cw.agg.count()),
        ),
        ("not-a-length", lambda flow: readings(flow, watermark=cw.bounded_delay(60))),
        ("not-a-watermark", lambda flow: readings(flow, watermark=60)),
    ],
)
def test_validation_that_crashed(code, build):
    flow = cw.Flow("bad")
    flow.sink("out", build(flow))
    with pytest.raises(cw.FlowError) as raised:
        flow.validate()
    assert [problem.code for problem in raised.value.problems] == [code]


def test_other_problems_than_a_foreign_stream_are_reported_too():
    flow = cw.Flow("bad")
    flow.source("unused", int)
    flow.sink("out", flow.source("a", Reading).merge(None).key_by("nowhere"))
    with pytest.raises(cw.FlowError) as raised:
        flow.validate()
    assert [problem.code for problem in raised.value.problems] == ["foreign-stream", "unused-step"]
