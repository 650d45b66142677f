from cutwater.events import Data, Verdict, Watermark
from cutwater.operators import Operator, eq_op, histogram, histogram_total, identity

EVENTS = [Data(0, "a"), Data(1, "a"), Watermark(0), Watermark(1)]


def test_an_operator_is_related_to_itself():
    assert eq_op(histogram(), histogram(), EVENTS, depth=3) == Verdict(True)


def test_the_reason_is_the_stream_that_tells_them_apart():
    silent = Operator(None, lambda state, _: (state, []))
    verdict = eq_op(identity(), silent, EVENTS, depth=2)
    assert not verdict
    assert verdict.position == 0
    assert verdict.reason == "they differ at the end of [Data(time=0, value='a')]"


def test_ends_are_compared_too():
    talks = Operator(0, lambda n, event: (n + 1, [event]), lambda n: ["end"] if n == 2 else [])
    assert eq_op(identity(), talks, EVENTS[:1], depth=1)
    verdict = eq_op(identity(), talks, EVENTS[:1], depth=2)
    assert verdict.position == 2
    assert verdict.reason.endswith("they end differently")


def test_only_monotone_streams_are_compared():
    """P4, Fig. 8 is out of reach once 1 was seen."""
    total, general = histogram_total({"a": 1}), histogram(batches=[(1, "a")])
    assert eq_op(total, general, EVENTS, seen=[1], depth=3)
    assert not eq_op(total, general, EVENTS, depth=2)


def test_at_depth_zero_only_the_ends_are_compared():
    silent = Operator(None, lambda state, _: (state, []))
    assert eq_op(identity(), silent, EVENTS, depth=0)


def test_a_stream_is_left_once_it_is_not_monotone():
    """What is late is dropped by one, and passed on by the other."""

    def step(seen, event):
        if isinstance(event, Watermark):
            return seen | {event.time}, [event]
        return seen, [] if event.time in seen else [event]

    dropping = Operator(frozenset(), step)
    assert eq_op(identity(), dropping, EVENTS, depth=3)
    assert not eq_op(identity(), dropping.at(frozenset([1])), EVENTS, depth=1)
