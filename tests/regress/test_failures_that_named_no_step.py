"""Built-in steps, generators and keys failed with a bare exception that named no step."""

import pytest

import cutwater as cw


def halves(n):
    yield n / 2
    raise ValueError("no second half")


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.flat_map(halves),
        lambda s: s.flat_map(lambda n: n),
        lambda s: s.map(str).aggregate(total=cw.agg.sum()),
        lambda s: s.map(lambda n: [n]).histogram(unbounded=True),
        lambda s: s.key_by(lambda n: [n]).batch(),
    ],
)
def test_failures_that_named_no_step(build):
    flow = cw.Flow("fails")
    flow.sink("out", build(flow.source("a", int)))
    step = flow.steps[-2] if flow.steps[-2].verb != "batch" else flow.steps[-3]
    with pytest.raises(cw.CutwaterError) as raised:
        cw.simulate(flow, {"a": [1]})
    assert step.title in str(raised.value)
