"""What an operator makes of a stream: `produce`, `fproduce` and `produce_1` (P4, section 3.1)."""

from itertools import count, cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operators import machines
from support.operators.infinite import infinite_streams
from support.operators.machines import SYMBOLS, logic, random_operators

from cutwater.operators import (
    Ended,
    Operator,
    Produced,
    batch,
    bulk,
    fproduce,
    histogram,
    identity,
    produce,
    produce_1,
)

words = st.text(SYMBOLS, max_size=8)
loops = st.text(SYMBOLS, min_size=1, max_size=4)
LONG = 40
"""More than the states of any machine times the length of any loop."""


class Tap:
    """An iterator that counts what is taken from it."""

    def __init__(self, events):
        self.events = iter(events)
        self.taken = 0

    def __iter__(self):
        return self

    def __next__(self):
        event = next(self.events)
        self.taken += 1
        return event


@given(random_operators(), words)
def test_produce_is_the_papers(op, lxs):
    assert list(produce(op, lxs)) == list(machines.produce(logic(op), lxs))


@given(random_operators(), loops)
def test_produce_is_the_papers_on_infinite_input_until_it_falls_silent(op, loop):
    expected = list(islice(machines.produce(logic(op), cycle(loop), LONG), 20))
    assert list(islice(produce(op, cycle(loop)), len(expected))) == expected


@given(random_operators(), words)
def test_fproduce_is_the_papers(op, xs):
    later, outputs = fproduce(op, xs)
    expected, expected_outputs = machines.fproduce(logic(op), xs)
    assert outputs == expected_outputs
    assert list(later.finish(later.initial)) == list(expected.exit)


@given(random_operators(), words)
def test_produce_1_is_the_papers(op, lxs):
    mine = produce_1(op, lxs, depth=LONG)
    theirs = machines.produce1(logic(op), iter(lxs), LONG)
    match mine:
        case Ended(later):
            assert theirs[0] == "Inr"
            assert list(later.finish(later.initial)) == list(theirs[1].exit)
        case Produced(later, first, others, rest):
            assert (first, list(others), list(rest)) == (theirs[2], theirs[3], list(theirs[4]))
            assert list(later.finish(later.initial)) == list(theirs[1].exit)
        case None:
            pytest.fail("the input is finite")


@given(random_operators(), loops)
def test_produce_1_is_none_where_no_output_ever_comes(op, loop):
    _, outputs = fproduce(op, islice(cycle(loop), LONG))
    assert (produce_1(op, cycle(loop), depth=LONG) is None) == (not outputs)


@given(random_operators(), words)
def test_produce_repeats_produce_1(op, lxs):
    """The defining equation of ``produce``."""
    match produce_1(op, lxs, depth=LONG):
        case Produced(later, first, others, rest):
            unfolded = [first, *others, *produce(later, rest)]
        case Ended(later):
            unfolded = list(later.finish(later.initial))
    assert list(produce(op, lxs)) == unfolded


@given(random_operators(), words, st.integers(0, 10))
def test_an_output_needs_only_the_inputs_that_cause_it(op, lxs, n):
    needed = next((k for k in range(len(lxs) + 1) if len(fproduce(op, lxs[:k])[1]) >= n), None)
    tap = Tap(lxs)
    taken = list(islice(produce(op, tap), n))
    if needed is not None:
        assert len(taken) == n
        assert tap.taken == needed


@given(infinite_streams(), st.integers(1, 8))
def test_produce_takes_no_more_of_an_infinite_stream_than_it_needs(stream, n):
    for op in (batch(), histogram(), identity()):
        tap = Tap(stream)
        outputs = list(islice(produce(op, tap), n))
        assert len(outputs) == n
        assert len(fproduce(op, stream.prefix(tap.taken))[1]) >= n
        assert len(fproduce(op, stream.prefix(tap.taken - 1))[1]) < n


def test_produce_waits_where_the_papers_would_end():
    """Decision: an infinite input that causes no output keeps ``produce`` busy."""
    silent = Operator(None, lambda state, _: (state, ()), lambda _: ["at the end"])
    assert list(machines.produce(logic(silent), count())) == []
    tap = Tap(iter(range(10_000)))
    assert next(produce(silent, tap)) == "at the end"
    assert tap.taken == 10_000


def test_the_end_of_an_operator_may_be_infinite():
    chatty = Operator(None, lambda state, _: (state, ()), lambda _: count())
    assert list(islice(produce(chatty, "ab"), 3)) == [0, 1, 2]


@given(words, st.integers(0, 4))
def test_produce_may_be_started_again(lxs, n):
    op = bulk(list, n)
    assert list(produce(op, lxs)) == list(produce(op, lxs))
