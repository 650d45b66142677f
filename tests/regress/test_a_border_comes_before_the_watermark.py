"""An aggregate per epoch emitted after the epoch's watermark, so its record was late behind it."""

import pytest

import cutwater as cw


@pytest.mark.parametrize("fuse", [True, False])
def test_a_barrier_comes_before_the_watermark(fuse):
    flow = cw.Flow("late")
    counts = flow.source("a", str).aggregate(emit="epoch", n=cw.agg.count())
    flow.sink("counts", counts)
    flow.sink("batches", counts.map(lambda record: record.n).batch())
    result = cw.simulate(flow, {"a": ["x", "y", cw.BARRIER, "z"]}, fuse=fuse)
    assert result.by_epoch("batches") == [[((1, 2),)], [((2, 3),)], []]
    assert cw.monotone([event for epoch in result.events["counts"] for event in epoch])
