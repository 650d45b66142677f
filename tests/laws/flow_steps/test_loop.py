"""Loops (P3): lexicographic rounds, and events in the order of their causes."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.flows.loops import Interpreter, left_of, nested, split

import cutwater as cw
import cutwater.operators.loop as loops
from cutwater.events import Data, Watermark
from cutwater.operators.compose import compose
from cutwater.operators.flatten import flatten
from cutwater.operators.loop import Body, LoopNode, loop
from cutwater.operators.map_values import map_values
from cutwater.times import in_rounds, rounds_of

NUMBER = st.tuples(st.integers(0, 3), st.integers(0, 9))
NUMBERS = st.lists(NUMBER, max_size=6)
GRID = st.lists(
    st.tuples(st.builds(cw.Product, st.integers(0, 1), st.integers(0, 1)), st.integers(0, 9)),
    max_size=5,
)
DEPTHS = st.integers(1, 3)


def events(pairs):
    return [Data(time, n) for time, n in pairs]


@settings(max_examples=60)
@given(DEPTHS, NUMBERS, st.integers(0, 99), st.lists(st.integers(0, 3), max_size=3))
def test_nested_loops_with_notifications_show_what_p3s_clock_allows(depth, pairs, seed, sizes):
    """simulate(loop) == the interpreter in any order, whatever the epochs, at every depth."""
    wanted = Interpreter(depth, seed).run(pairs)
    assert left_of(cw.simulate(nested(depth), {"numbers": events(pairs)})) == wanted
    cut = split(events(pairs), sizes)
    assert left_of(cw.simulate(nested(depth), {"numbers": cut})) == wanted


@settings(max_examples=30)
@given(DEPTHS, GRID, st.integers(0, 99))
def test_input_times_may_be_partially_ordered(depth, pairs, seed):
    wanted = Interpreter(depth, seed).run(pairs)
    marks = [Watermark(cw.Product(0, 1)), Watermark(cw.Product(1, 1))]
    numbers = [*events(pairs), cw.BARRIER, *marks]
    assert left_of(cw.simulate(nested(depth), {"numbers": numbers})) == wanted


@settings(max_examples=30)
@given(DEPTHS, GRID, st.integers(0, 99))
def test_the_end_completes_times_that_cannot_be_compared(depth, pairs, seed):
    wanted = Interpreter(depth, seed).run(pairs)
    assert left_of(cw.simulate(nested(depth), {"numbers": events(pairs)})) == wanted


@settings(max_examples=30)
@given(DEPTHS, NUMBERS)
def test_a_watermark_leaves_when_nothing_of_its_time_goes_round(depth, pairs):
    """After Watermark(t) nothing at or before t leaves, and all of it has left before."""
    wanted = Interpreter(depth, 0).run(pairs)
    numbers = [*events(pairs), cw.BARRIER, Watermark(1), Watermark(2)]
    seen = [e for es in cw.simulate(nested(depth), {"numbers": numbers}).events["out"] for e in es]
    marks = [event.time for event in seen if isinstance(event, Watermark)]
    assert marks == [1, 2]
    for mark in marks:
        place = seen.index(Watermark(mark))
        before = Counter((e.time, e.value) for e in seen[:place] if isinstance(e, Data))
        due = Counter({item: count for item, count in wanted.items() if item[0] <= mark})
        assert due <= before
        assert not [e for e in seen[place + 1 :] if isinstance(e, Data) and e.time <= mark]


def with_marks(pairs, phases):
    """Events with Watermark(0), (1) and (2) among them, each event before that of its time."""
    numbers = []
    for mark in range(3):
        placed = zip(pairs, phases, strict=True)
        numbers += events(pair for pair, phase in placed if min(pair[0], phase) == mark)
        numbers.append(Watermark(mark))
    late = zip(pairs, phases, strict=True)
    return numbers + events(pair for pair, phase in late if min(pair[0], phase) > 2)


@settings(max_examples=60)
@given(DEPTHS, st.lists(st.tuples(NUMBER, st.integers(0, 3)), max_size=6), st.integers(0, 99))
def test_a_watermark_comes_after_the_outputs_of_the_data_before_it(depth, drawn, seed):
    """In one epoch, too: Watermark(t) has all outputs at or before t before it, none after it."""
    pairs = [pair for pair, _ in drawn]
    numbers = with_marks(pairs, [phase for _, phase in drawn])
    wanted = Interpreter(depth, seed).run(pairs)
    shown = cw.simulate(nested(depth), {"numbers": numbers})
    assert left_of(shown) == wanted
    assert [Watermark(mark) for mark in range(3)] == [
        event for event in shown.events["out"][0] if isinstance(event, Watermark)
    ]
    for mark in range(3):
        first = shown.events["out"][0]
        before = first[: first.index(Watermark(mark))]
        here = Counter((e.time, e.value) for e in before if isinstance(e, Data) and e.time <= mark)
        assert here == Counter({item: n for item, n in wanted.items() if item[0] <= mark})


def halved(time, n):
    return [n // 2, n - n // 2] if n > 1 else []


@given(st.lists(st.integers(0, 20), max_size=5))
def test_iterate_f_equals_f_then_f_of_f_and_so_on_while_there_is_something(numbers):
    """iterate(f)(x) = f(x) + f(f(x)) + …, round by round, each in the order of its causes."""
    body = compose(map_values(halved), flatten())
    op = loop(Body((LoopNode(body),), again=0, out=0, title="halve"))
    state = op.start_for(None)
    for n in numbers:
        state, outputs = op.step(state, Data(7, n))
        assert outputs == ()
    expected, values = [], list(numbers)
    while values:
        values = [m for n in values for m in halved(7, n)]
        expected += [Data(7, n) for n in values]
    assert list(op.barrier(state)[1]) == expected
    assert list(op.barrier(state)[1]) == []
    assert op.is_blank(state)


class LatestFirst(loops._Iteration):
    """Completes the latest rounds that are waited for, and with them all earlier ones at once."""

    def _due(self, limits):
        due = super()._due(limits)
        return {max(due)} if due else due


class TooMuch(loops._Iteration):
    """Completes what nobody has completed outside."""

    def complete(self, limits):
        return super().complete([in_rounds(3, rounds_of(limit)) for limit in limits])


class Unsorted(loops._Iteration):
    """Takes what is fed back in another order than that of its causes."""

    def _fed_back(self, fed):
        return super()._fed_back(fed[::-1])


class Early(loops._Iteration):
    """Tells nodes that a round is over before what is fed back into it has come."""

    def _round(self, rows, completed=()):
        ahead = [in_rounds(t, (*rounds_of(t)[:-1], rounds_of(t)[-1] + 1)) for t in completed]
        return super()._round(rows, ahead)


@pytest.mark.parametrize("broken", [LatestFirst, TooMuch, Unsorted, Early])
def test_broken_turns_are_caught(monkeypatch, broken):
    """Each of them shows something else than the interpreter, or the order of the causes."""
    pairs = [(1, 9), (1, 9), (2, 7), (3, 8), (2, 4)]
    numbers = [*events(pairs), cw.BARRIER, Watermark(1), cw.BARRIER, Data(3, 5)]
    sound = [cw.simulate(nested(depth), {"numbers": numbers}).events for depth in (1, 2, 3)]
    assert left_of(cw.simulate(nested(2), {"numbers": numbers})) == Interpreter(2, 1).run(
        [*pairs, (3, 5)]
    )
    body = compose(map_values(halved), flatten())
    op = loop(Body((LoopNode(body),), again=0, out=0, title="halve"))
    state, _ = op.step(op.start_for(None), Data(7, 5))
    straight = list(op.barrier(state)[1])
    monkeypatch.setattr(loops, "_Iteration", broken)
    state, _ = op.step(op.start_for(None), Data(7, 5))
    shown = [cw.simulate(nested(depth), {"numbers": numbers}).events for depth in (1, 2, 3)]
    assert shown != sound or list(op.barrier(state)[1]) != straight
