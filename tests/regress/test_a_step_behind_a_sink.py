"""flow.sink returned a stream that nothing could be built on: a KeyError when the flow ran."""

import cutwater as cw


def test_a_step_behind_a_sink():
    flow = cw.Flow("tee")
    flow.sink("raw", flow.source("a", int)).map(str).sink("text")
    result = cw.simulate(flow, {"a": [1]})
    assert (result["raw"], result["text"]) == ([1], ["1"])
