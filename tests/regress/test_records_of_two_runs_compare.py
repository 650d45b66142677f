"""Each run made record classes of its own, so that equal records of two runs were not equal."""

import cutwater as cw


def test_records_of_two_runs_compare():
    flow = cw.Flow("counts")
    flow.sink("out", flow.source("a", int).aggregate(n=cw.agg.count()))
    first, second = (cw.simulate(flow, {"a": [1, 2]})["out"] for _ in range(2))
    assert first == second
    assert [record.n for record in first] == [1, 2]
