from collections import Counter

from support.operators.orders import closure

from cutwater.events import Data, Watermark
from cutwater.operators import histogram_total, produce


def test_times_need_no_comparison_but_less_or_equal():
    first, second = closure(2, [(0, 1)])
    stream = [Data(second, "b"), Data(first, "a"), Watermark(second)]
    assert list(produce(histogram_total(), stream)) == [
        Data(second, Counter("ab")),
        Data(first, Counter("a")),
        Watermark(second),
    ]


def test_what_was_emitted_is_not_the_state():
    """A reader that changes a count changes nothing in the operator."""
    op = histogram_total()
    state, _ = op.step(op.initial, Data(1, "a"))
    state, outputs = op.step(state, Watermark(1))
    outputs[0].value["a"] = 100
    state, _ = op.step(state, Data(2, "a"))
    assert next(iter(op.finish(state))).value == Counter("aa")


def test_the_counts_given_are_not_changed():
    counts = Counter("a")
    list(produce(histogram_total(counts), [Data(1, "b"), Watermark(1)]))
    assert counts == Counter("a")
