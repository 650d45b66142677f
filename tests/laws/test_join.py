"""The relational join of two streams: equations (28) to (31)."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from support.operators import machines
from support.operators.infinite import infinite_streams, overdue, stepwise, two_sided_clocks
from support.operators.orders import cases, closure, two_sided
from support.operators.paper import DTs, data, maximal_antichain_list, mono, producible

from cutwater.events import Data, Watermark, monotone, productive
from cutwater.operators import fproduce, join, produce
from cutwater.times import Left, Product, Right


def in_order(left, right):
    """Joins what is in alphabetical order; not symmetric, and without a result for some."""
    return left + right if left <= right else None


def joined(lxs, t):
    """All joined values of a time."""
    found = (in_order(a, b) for a in DTs(lxs, Left(t)) for b in DTs(lxs, Right(t)))
    return [value for value in found if value is not None]


def times(lxs):
    return {event.time.time for event in data(lxs)}


@given(cases(two_sided(), monotone=False))
def test_join_is_the_papers(case):
    waiting = [time for time, _ in case.batches]  # any times at all
    theirs = machines.join_op(case.pending, case.batches, waiting, set(case.seen), in_order)
    mine = join(in_order, case.pending, case.batches, waiting, case.seen)
    assert list(produce(mine, case.lxs)) == list(machines.produce(theirs, case.lxs))


@given(cases(two_sided()))
def test_eq28_join_soundness(case):
    for output in data(produce(join(in_order), case.lxs)):
        assert output.value in joined(case.lxs, output.time)


@given(cases(two_sided(), monotone=False))
def test_eq28_does_not_need_monotone_where_streams_are_finite(case):
    """In the paper ``mono`` makes the collection of a time finite."""
    for output in data(produce(join(in_order), case.lxs)):
        assert output.value in joined(case.lxs, output.time)


@given(infinite_streams(two_sided_clocks()), st.integers(0, 25))
def test_eq28_join_soundness_on_infinite_streams(stream, n):
    lxs = stream.prefix(n)
    for output in data(fproduce(join(in_order), lxs)[1]):
        assert output.value in joined(lxs, output.time)


@given(cases(two_sided()))
def test_eq29_join_completeness(case):
    outputs = data(produce(join(in_order), case.lxs))
    for t in times(case.lxs):
        for value in joined(case.lxs, t):
            assert Data(t, value) in outputs


@given(cases(two_sided()))
def test_eq29_every_pair_is_joined_once(case):
    """Stronger than (28) and (29): as multisets the outputs are the pairs."""
    outputs = Counter(data(produce(join(in_order), case.lxs)))
    assert outputs == Counter(
        Data(t, value) for t in times(case.lxs) for value in joined(case.lxs, t)
    )


def test_eq29_a_pair_is_joined_again_if_the_stream_is_not_monotone():
    lxs = [Data(Left(0), "a"), Data(Right(0), "b"), Watermark(Left(0)), Watermark(Right(0))]
    late = [Data(Left(0), "a"), Watermark(Left(0))]
    assert [d.value for d in data(produce(join(in_order), [*lxs, *late]))] == ["ab", "ab", "ab"]


@given(infinite_streams(two_sided_clocks()))
def test_eq29_join_completeness_on_infinite_streams(stream):
    n = 2 * stream.round_length
    lxs = stream.prefix(n)
    outputs = [event for _, event in stepwise(join(in_order), stream.prefix(n + stream.lag))]
    for t in times(lxs):
        for value in joined(lxs, t):
            assert Data(t, value) in outputs


def test_eq29_fails_for_a_stream_that_is_not_productive():
    lxs = [Data(Left(0), "a"), Data(Right(0), "b")] * 100
    assert stepwise(join(in_order), lxs) == []


@given(cases(two_sided()))
def test_eq30_join_preserves_monotonicity(case):
    outputs = list(produce(join(in_order), case.lxs))
    assert mono(outputs, set())
    assert monotone(outputs)


@given(cases(two_sided()))
def test_eq30_join_preserves_monotonicity_from_buffers_that_belong_together(case):
    """What the paper leaves out "to simplify the involved assumptions"."""
    waiting = [wm for wm in case.seen if not producible(wm, case.seen)]
    completed = {wm.time for wm in case.seen if producible(wm, case.seen)}
    pending = [(t, d) for t, d in case.pending if not any(t <= wm for wm in case.seen)]
    op = join(in_order, pending, case.batches, waiting, maximal_antichain_list(case.seen))
    assert mono(list(produce(op, case.lxs)), completed)


def test_eq30_fails_for_a_stream_that_is_not_monotone():
    sides = [Watermark(Left(1)), Watermark(Right(1)), Data(Left(0), "a"), Data(Right(0), "b")]
    assert not mono(list(produce(join(in_order), sides)), set())


@given(infinite_streams(two_sided_clocks()))
def test_eq31_join_preserves_productivity_if_every_watermark_is_producible(stream):
    assert overdue(join(in_order), stream, extra=stream.lag) == []


def test_eq31_fails_if_the_sides_complete_times_that_have_no_common_bound():
    """Both sides complete every time, but by watermarks that the other side never reaches."""
    bottom, x, y = closure(3, [(0, 1), (0, 2)])
    lxs = [
        event
        for n in range(30)
        for event in (
            Data(Left(Product(n, bottom)), "a"),
            Data(Right(Product(n, bottom)), "b"),
            Watermark(Left(Product(n, x))),
            Watermark(Right(Product(n, y))),
        )
    ]
    assert mono(lxs, set())
    assert productive(lxs, lag=3)
    marks = [event.time for event in lxs if isinstance(event, Watermark)]
    assert not any(producible(wm, marks) for wm in marks)
    outputs = [event for _, event in stepwise(join(in_order), lxs)]
    assert outputs == [Data(Product(n, bottom), "ab") for n in range(30)]
