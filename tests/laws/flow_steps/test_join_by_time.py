"""The join that frees: P4's join without what it keeps."""

from collections import Counter

from hypothesis import given
from support.operators.orders import cases, two_sided
from support.operators.paper import DTs, mono

from cutwater.events import Data, Watermark, monotone
from cutwater.operators import join, produce
from cutwater.operators.frontier import Frontier
from cutwater.operators.join_by_time import join_by_time
from cutwater.times import Left, Product, Right, maximal


def pair(left, right):
    return None if left == right == "c" else left + right


def with_common_watermarks(lxs):
    """The stream as the engine gives it: what both sides completed, once they have."""
    frontier = Frontier.of(2)
    for event in lxs:
        if isinstance(event, Data):
            yield event
            continue
        frontier, common = frontier.advance(
            (Left, Right).index(type(event.time)), [event.time.time]
        )
        yield from map(Watermark, common)


def by_time(events):
    """The data of each time, in order."""
    found = {}
    for event in events:
        if isinstance(event, Data):
            found.setdefault(event.time, []).append(event.value)
    return found


@given(cases(two_sided()))
def test_every_pair_of_a_time_once(case):
    """From scratch: the product of the two sides' collections, for each time."""
    outputs = by_time(produce(join_by_time(pair), with_common_watermarks(case.lxs)))
    expected = {}
    for time in {time.time for time in case.times}:
        pairs = [pair(a, b) for a in DTs(case.lxs, Left(time)) for b in DTs(case.lxs, Right(time))]
        found = [value for value in pairs if value is not None]
        if found:
            expected[time] = found
    assert outputs == expected


@given(cases(two_sided()))
def test_the_same_as_join(case):
    """As multisets of each time."""
    ours = by_time(produce(join_by_time(pair), with_common_watermarks(case.lxs)))
    theirs = by_time(produce(join(pair), case.lxs))
    assert {t: Counter(values) for t, values in ours.items()} == {
        t: Counter(values) for t, values in theirs.items()
    }


@given(cases(two_sided()))
def test_nothing_is_kept_of_a_completed_time(case):
    op = join_by_time(pair)
    state, completed = op.initial, []
    for event in with_common_watermarks(case.lxs):
        state, _ = op.step(state, event)
        if isinstance(event, Watermark):
            completed.append(event.time)
        assert not any(side.time <= mark for side, _ in state for mark in completed)
    assert op.is_blank(state) == op.is_idle(state) == (len(state) == 0)


@given(cases(two_sided()))
def test_monotone_streams_stay_monotone_and_watermarks_pass(case):
    lxs = list(with_common_watermarks(case.lxs))
    outputs = list(produce(join_by_time(pair), lxs))
    marks = [event for event in lxs if isinstance(event, Watermark)]
    assert [event for event in outputs if isinstance(event, Watermark)] == marks
    assert mono(outputs, set())
    assert monotone(outputs)


def test_a_pair_comes_when_both_sides_are_complete_and_not_before():
    op = join_by_time(pair)
    state, outputs = op.step(op.initial, Data(Left(1), "a"))
    assert outputs == ()
    state, outputs = op.step(state, Data(Right(1), "b"))
    assert outputs == ()
    state, outputs = op.step(state, Watermark(0))
    assert outputs == (Watermark(0),)
    state, outputs = op.step(state, Watermark(1))
    assert outputs == [Data(1, "ab"), Watermark(1)]
    assert not state


def test_the_end_is_a_watermark_for_each_maximal_time_one_after_the_other():
    """finish = step over maximal(times): what the first completes comes before what it does not."""
    earlier, other, later = Product(1, 0), Product(0, 1), Product(2, 0)
    data = [Data(side(time), "ab"[side is Right]) for time in (earlier, other, later)
            for side in (Left, Right)]  # fmt: skip
    ends = [Watermark(time) for time in maximal([earlier, other, later])]
    found = list(produce(join_by_time(pair), data))
    told = [event for event in produce(join_by_time(pair), [*data, *ends]) if event not in ends]
    assert found == told
    assert [event.time for event in found] != [earlier, other, later]  # not as they came


def test_what_is_due_first_is_the_least_time_wherever_it_stands():
    op = join_by_time(pair)
    state = op.initial
    for time in (3, 1, 2):
        state, _ = op.step(state, Data(Left(time), "a"))
    assert op.due(state) == 1
