"""What a watermark completed reached the aggregate after the barrier, or never: it was lost."""

import pytest

import cutwater as cw


@pytest.mark.parametrize("fuse", [True, False])
def test_an_aggregate_per_epoch_behind_a_window(fuse):
    flow = cw.Flow("windows")
    windows = flow.source("a", int).window(cw.tumbling(2)).aggregate(n=cw.agg.count())
    totals = windows.aggregate(emit="epoch", total=cw.agg.sum("n"))
    flow.sink("out", totals.map(lambda record: record.total))
    result = cw.simulate(flow, {"a": [10, 11, 12, cw.BARRIER, 13, 14]}, fuse=fuse)
    assert result.by_epoch("out") == [[2], [4], [5]]
