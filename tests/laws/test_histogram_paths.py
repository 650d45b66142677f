"""Counting every path (P4, section 5.1: the more complex specification)."""

from collections import Counter

from hypothesis import given
from support.operators.figures import STREAM, t0, t1, t2, t3, t4, t5
from support.operators.infinite import infinite_streams, overdue
from support.operators.orders import cases, closure, total_orders, uncompleted_pending
from support.operators.paper import H, as_events, chains, data, mono

from cutwater.events import Data, Watermark, monotone
from cutwater.operators import histogram, histogram_paths, produce


@given(cases())
def test_histogram_paths_soundness(case):
    for output in data(produce(histogram_paths(), case.lxs)):
        assert output.value == H(case.lxs, output.time)


@given(cases())
def test_histogram_paths_soundness_with_something_pending(case):
    for output in data(produce(histogram_paths(case.pending), case.lxs)):
        assert output.value == H([*as_events(case.pending), *case.lxs], output.time)


@given(cases(monotone=False))
def test_histogram_paths_completeness(case):
    outputs = data(produce(histogram_paths(), case.lxs))
    assert {output.time for output in outputs} == {event.time for event in data(case.lxs)}


@given(cases())
def test_histogram_paths_preserves_monotonicity(case):
    outputs = list(produce(histogram_paths(uncompleted_pending(case), case.batches), case.lxs))
    assert mono(outputs, case.seen)
    assert monotone(outputs, case.seen)


@given(infinite_streams())
def test_histogram_paths_preserves_productivity(stream):
    assert overdue(histogram_paths(), stream) == []


@given(cases(total_orders(), monotone=False))
def test_on_a_total_order_every_path_is_the_same(case):
    paths = produce(histogram_paths(case.pending, case.batches), case.lxs)
    assert list(paths) == list(produce(histogram(case.pending, case.batches), case.lxs))


# Figs. 1a and 6, as for `histogram`: t5 is reached by way of t2 and of t3.
def test_fig6_by_paths():
    outputs = {d.time: d.value for d in data(produce(histogram_paths(), [Data(t0, "a"), *STREAM]))}
    assert outputs == {
        t0: Counter(a=2),
        t1: Counter(a=2, c=1),
        t2: Counter(a=2, b=1),
        t3: Counter(a=3),
        t4: Counter(a=2, c=1, d=1),
        t5: Counter(a=6, b=1, c=1),
    }


def diamonds(count):
    """Diamonds one above the other, with an item at each corner, all completed by the top."""
    edges = [
        (3 * n + less, 3 * n + more)
        for n in range(count)
        for less, more in [(0, 1), (0, 2), (1, 3), (2, 3)]
    ]
    points = closure(3 * count + 1, edges)
    return points, [*(Data(point, point.name) for point in points), Watermark(points[-1])]


def at_the_top(count):
    points, lxs = diamonds(count)
    outputs = {d.time: d.value for d in data(produce(histogram_paths(), lxs))}
    return outputs[points[-1]], chains(lxs, points[-1])


def test_one_diamond_is_counted_as_in_the_artifact():
    mine, theirs = at_the_top(1)
    assert mine == theirs == Counter({0: 2, 1: 1, 2: 1, 3: 1})


def test_two_diamonds_are_not():
    """The recursion counts an item once for every path *from* it; the artifact, which sums over
    maximal chains, once for every path *through* it. They differ above an item that several
    paths reach.
    """
    mine, theirs = at_the_top(2)
    assert mine == Counter({0: 4, 1: 2, 2: 2, 3: 2, 4: 1, 5: 1, 6: 1})
    assert theirs == Counter({0: 4, 1: 2, 2: 2, 3: 4, 4: 2, 5: 2, 6: 1})
