"""What several inputs completed together."""

from hypothesis import given
from hypothesis import strategies as st
from support.operators.orders import cases, one_sided, two_sided

from cutwater.events import Watermark
from cutwater.operators import produce, union
from cutwater.operators.frontier import Frontier
from cutwater.times import Left, Product, Right


def advanced(inputs, marks):
    """What becomes common with each mark, one after the other."""
    frontier, found = Frontier.of(inputs), []
    for source, time in marks:
        frontier, common = frontier.advance(source, [time])
        found.append(common)
    return found


@st.composite
def marked(draw, orders=None, most=4):
    """An order, a number of inputs, and watermarks of these."""
    times = draw(one_sided() if orders is None else orders)
    inputs = draw(st.integers(1, most))
    mark = st.tuples(st.integers(0, inputs - 1), st.sampled_from(times))
    return times, inputs, draw(st.lists(mark, max_size=12))


def below(time, marks):
    return any(time <= mark for mark in marks)


def completed_by_all(time, inputs, marks):
    """Is the time at or below a watermark of every input?"""
    return all(below(time, [t for source, t in marks if source == i]) for i in range(inputs))


def news(times):
    """Watermarks without those that come after a larger one."""
    found = []
    for time in times:
        if not below(time, found):
            found.append(time)
    return found


@given(cases(two_sided(), monotone=False))
def test_of_two_inputs_is_what_union_emits(case):
    """Watermark by watermark, the same ones in the same order, but for those that say nothing."""
    marks = [event.time for event in case.lxs if isinstance(event, Watermark)]
    ours = advanced(2, [((Left, Right).index(type(mark)), mark.time) for mark in marks])
    for n in range(len(marks) + 1):
        theirs = [event.time for event in produce(union(), map(Watermark, marks[:n]))]
        assert news(time for common in ours[:n] for time in common) == news(theirs)


@given(marked(st.just(list(range(6)))))
def test_over_a_total_order_one_watermark_of_each_input_waits(case):
    _, inputs, marks = case
    frontier = Frontier.of(inputs)
    for source, time in marks:
        frontier, _ = frontier.advance(source, [time])
        assert all(len(waiting) <= 1 for waiting in frontier.held)


@given(marked())
def test_what_is_common_was_completed_by_all(case):
    _, inputs, marks = case
    for n, common in enumerate(advanced(inputs, marks), start=1):
        assert all(completed_by_all(time, inputs, marks[:n]) for time in common)


@given(marked())
def test_a_watermark_is_common_as_soon_as_all_have_completed_it(case):
    """Nothing is made up: of what all completed, the watermarks that somebody announced."""
    _, inputs, marks = case
    found = []
    for n, common in enumerate(advanced(inputs, marks), start=1):
        found += common
        for _, time in marks[:n]:
            assert below(time, found) == completed_by_all(time, inputs, marks[:n])


@given(marked(st.just(list(range(6)))))
def test_over_a_total_order_it_is_the_intersection(case):
    times, inputs, marks = case
    found = []
    for n, common in enumerate(advanced(inputs, marks), start=1):
        found += common
        for time in times:
            assert below(time, found) == completed_by_all(time, inputs, marks[:n])


def met(marks):
    """What three inputs complete, met at once, and met in pairs: merge(merge(a, b), c)."""
    flat, pair, top = Frontier.of(3), Frontier.of(2), Frontier.of(2)
    at_once, in_pairs = [], []
    for source, time in marks:
        flat, common = flat.advance(source, [time])
        at_once += common
        passed = [time]
        if source < 2:
            pair, passed = pair.advance(source, [time])
        for mark in passed:
            top, common = top.advance(source // 2, [mark])
            in_pairs += common
    return at_once, in_pairs


@given(marked(st.just(list(range(6))), most=3))
def test_over_a_total_order_to_meet_in_pairs_is_to_meet_at_once(case):
    times, _, marks = case
    at_once, in_pairs = met(marks)
    assert all(below(time, at_once) == below(time, in_pairs) for time in times)


@given(marked(most=3))
def test_to_meet_in_pairs_completes_no_more_than_to_meet_at_once(case):
    times, _, marks = case
    at_once, in_pairs = met(marks)
    assert all(below(time, at_once) for time in times if below(time, in_pairs))


def test_in_pairs_a_meet_that_nobody_announced_to_the_pair_is_missed():
    """Two say (0, 1) and (1, 0): of what they completed, (0, 0), neither has made a watermark."""
    at_once, in_pairs = met([(0, Product(0, 1)), (1, Product(1, 0)), (2, Product(0, 0))])
    assert (at_once, in_pairs) == ([Product(0, 0)], [])


@given(marked())
def test_several_watermarks_at_once_complete_what_they_do_one_by_one(case):
    times, inputs, marks = case
    frontier, at_once = Frontier.of(inputs), []
    for source in range(inputs):
        frontier, common = frontier.advance(source, [t for i, t in marks if i == source])
        at_once += common
    one_by_one = [
        t for common in advanced(inputs, sorted(marks, key=lambda m: m[0])) for t in common
    ]
    assert all(below(time, at_once) == below(time, one_by_one) for time in times)


@given(marked())
def test_what_waits_has_not_been_completed_by_all(case):
    _, inputs, marks = case
    frontier = Frontier.of(inputs)
    for n, (source, time) in enumerate(marks, start=1):
        frontier, _ = frontier.advance(source, [time])
        assert not any(completed_by_all(t, inputs, marks[:n]) for _, t in frontier.waiting)


def test_the_newest_watermark_comes_first_as_in_union():
    one, two, five = (Product(n, n) for n in (1, 2, 5))
    frontier, _ = Frontier.of(2).advance(0, [one, two])
    _, common = frontier.advance(1, [five])
    assert common == [two, one]
    frontier, _ = Frontier.of(2).advance(1, [five])
    assert frontier.advance(0, [one, two])[1] == [two, one]


def test_over_numbers_the_newest_stands_for_those_before_it():
    frontier, _ = Frontier.of(2).advance(0, [1, 2])
    assert frontier.waiting == ((0, 2),)
    assert frontier.advance(1, [5])[1] == [2]
    assert frontier.advance(1, [1])[1] == [1]
