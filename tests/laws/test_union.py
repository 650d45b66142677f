"""Two streams as one (P4, section 5.2); the paper omits the four properties of ``union_op``.

They are stated here with the side conditions that its artifact has for them: `seen` are the
maximal elements of all watermarks W that came before, `waiting` those of W not yet producible.
"""

from itertools import islice

from hypothesis import given
from support.operators import machines
from support.operators.infinite import infinite_streams, overdue, stepwise, two_sided_clocks
from support.operators.orders import cases, two_sided
from support.operators.paper import maximal_antichain_list, mono, producible

from cutwater.events import Data, Watermark, monotone
from cutwater.operators import fproduce, produce, union
from cutwater.times import Left, Right


def unproduced(seen):
    return [wm for wm in seen if not producible(wm, seen)]


def after(seen):
    """The union that has seen watermarks, and the times that it has completed so far."""
    completed = {wm.time for wm in seen if producible(wm, seen)}
    return union(unproduced(seen), maximal_antichain_list(seen)), completed


def without_sides(lxs):
    return [Data(event.time.time, event.value) for event in lxs if isinstance(event, Data)]


@given(cases(two_sided(), monotone=False))
def test_union_is_the_papers(case):
    waiting = [time for time, _ in case.pending]  # any times at all
    expected = machines.produce(machines.union_op(waiting, set(case.seen)), case.lxs)
    assert list(produce(union(waiting, case.seen), case.lxs)) == list(expected)


@given(cases(two_sided(), monotone=False))
def test_union_soundness_and_completeness(case):
    op, _ = after(case.seen)
    outputs = [event for event in produce(op, case.lxs) if isinstance(event, Data)]
    assert outputs == without_sides(case.lxs)


@given(infinite_streams(two_sided_clocks()))
def test_union_soundness_and_completeness_on_infinite_streams(stream):
    outputs = (event for event in produce(union(), stream) if isinstance(event, Data))
    expected = without_sides(stream.prefix(30))
    assert list(islice(outputs, len(expected))) == expected


@given(cases(two_sided(), monotone=False))
def test_a_watermark_passes_as_soon_as_both_sides_have_completed_it(case):
    for n in range(len(case.lxs) + 1):
        op, _ = after(case.seen)
        _, outputs = fproduce(op, case.lxs[:n])
        passed = [event.time for event in outputs if isinstance(event, Watermark)]
        marks = [event.time for event in case.lxs[:n] if isinstance(event, Watermark)]
        ready = [
            wm.time
            for wm in [*unproduced(case.seen), *marks]
            if producible(wm, [*case.seen, *marks])
        ]
        assert sorted(map(repr, passed)) == sorted(map(repr, ready))


@given(cases(two_sided()))
def test_union_preserves_monotonicity(case):
    op, completed = after(case.seen)
    outputs = list(produce(op, case.lxs))
    assert mono(outputs, completed)
    assert monotone(outputs, completed)


def test_union_is_not_monotone_if_a_watermark_waits_that_nobody_has_seen():
    """The buffers must belong together."""
    op = union(waiting=[Left(2)], seen=[])
    lxs = [Watermark(Right(2)), Data(Left(1), "a")]
    assert mono(lxs, set())
    assert not mono(list(produce(op, lxs)), set())


@given(infinite_streams(two_sided_clocks()))
def test_union_preserves_productivity_if_every_watermark_is_producible(stream):
    """Each is within one lag of the stream, so k' is that lag."""
    assert overdue(union(), stream, extra=stream.lag) == []


def test_union_does_not_preserve_productivity_if_one_side_has_no_watermarks():
    lxs = [event for n in range(50) for event in (Data(Left(n), "a"), Watermark(Left(n)))]
    outputs = [event for _, event in stepwise(union(), lxs)]
    assert len(outputs) == 50
    assert not any(isinstance(event, Watermark) for event in outputs)
    assert not any(producible(Left(n), [event.time for event in lxs]) for n in range(50))


@given(cases(two_sided()))
def test_the_two_sides_are_alike(case):
    swapped = [
        Data(event.time.opposite, event.value)
        if isinstance(event, Data)
        else Watermark(event.time.opposite)
        for event in case.lxs
    ]
    assert list(produce(union(), swapped)) == list(produce(union(), case.lxs))


def test_a_time_that_both_sides_complete_at_once_passes_twice():
    lxs = [Watermark(Left(1)), Watermark(Right(1))]
    assert list(produce(union(), lxs)) == [Watermark(1), Watermark(1)]
