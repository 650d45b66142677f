"""Leaving out the first outputs: equation (5)."""

from itertools import cycle, islice

from hypothesis import given
from hypothesis import strategies as st
from support.operators import machines
from support.operators.infinite import infinite_streams
from support.operators.machines import SYMBOLS, logic, random_operators
from support.operators.orders import cases

from cutwater.operators import Produced, batch, fproduce, histogram, produce, produce_1, skip

words = st.text(SYMBOLS, max_size=8)
counts = st.integers(0, 12)


@given(random_operators(), counts, words)
def test_skip_is_the_papers(op, n, lxs):
    expected = machines.produce(machines.skip_op(logic(op), n), lxs)
    assert list(produce(skip(op, n), lxs)) == list(expected)


@given(random_operators(), counts, words)
def test_eq5_skip_is_dropping(op, n, lxs):
    assert list(produce(skip(op, n), lxs)) == list(produce(op, lxs))[n:]


@given(cases(monotone=False), counts)
def test_eq5_skip_is_dropping_for_operators_over_events(case, n):
    op = batch(case.pending)
    assert list(produce(skip(op, n), case.lxs)) == list(produce(op, case.lxs))[n:]


@given(infinite_streams(), counts)
def test_eq5_skip_is_dropping_on_infinite_streams(stream, n):
    op = histogram()
    skipped = islice(produce(skip(op, n), stream), 10)
    assert list(skipped) == list(islice(produce(op, stream), n, n + 10))


@given(random_operators(), counts, st.text(SYMBOLS, min_size=1, max_size=4))
def test_the_first_output_after_skipping_n_is_the_nth(op, n, loop):
    """How the paper's proofs speak of an output at any position (section 3.2)."""
    inputs = 60
    found = produce_1(skip(op, n), cycle(loop), depth=inputs)
    outputs = fproduce(op, islice(cycle(loop), inputs))[1]
    if isinstance(found, Produced):
        assert found.first == outputs[n]
    else:
        assert len(outputs) <= n


@given(random_operators(), counts, counts, words)
def test_skipping_twice_is_skipping_the_sum(op, n, m, lxs):
    assert list(produce(skip(skip(op, n), m), lxs)) == list(produce(skip(op, n + m), lxs))
