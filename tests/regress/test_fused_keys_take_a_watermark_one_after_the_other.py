"""Fused, each key took a watermark through all steps; unfused, each step through all keys."""

import cutwater as cw


def test_fused_keys_take_a_watermark_one_after_the_other():
    def receive(state, time, batch):
        return state, [("got", batch), cw.Notify(time)]

    def complete(state, time):
        return state, [("told", time)]

    flow = cw.Flow("keys")
    batches = flow.source("a", str).key_by(lambda word: word).batch()
    flow.sink("out", batches.on_complete(receive, complete, initial=0).map(lambda pair: pair[0]))
    events = [cw.Data(1, "x"), cw.Data(1, "y"), cw.Watermark(1)]
    for fuse in (True, False):
        shown = cw.simulate(flow, {"a": events}, fuse=fuse)["out"]
        assert shown == ["got", "told", "got", "told"]


def test_two_watermarks_that_pass_at_once_take_effect_one_after_the_other():
    """One input waits with two incomparable watermarks; the other's comes and both pass."""

    def receive(count, time, batch):
        return count + 1, [cw.Notify(time)]

    def complete(count, time):
        return count, [count]

    flow = cw.Flow("incomparable")
    both = flow.source("a", str).merge(flow.source("b", str)).batch()
    flow.sink("out", both.on_complete(receive, complete, initial=0, name="told"))
    left, right = cw.Product(0, 1), cw.Product(1, 0)
    inputs = {
        "a": [cw.Data(left, "x"), cw.Data(right, "y"), cw.Watermark(left), cw.Watermark(right)],
        "b": [cw.Watermark(cw.Product(2, 2))],
    }
    assert [cw.simulate(flow, inputs, fuse=fuse)["out"] for fuse in (True, False)] == [[1, 2]] * 2
