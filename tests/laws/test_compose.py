"""Sequential composition: equations (6) and (7), and that it preserves what its parts do."""

from itertools import count, cycle, islice

from hypothesis import assume, given
from hypothesis import strategies as st
from support.operators import machines
from support.operators.infinite import infinite_streams, overdue
from support.operators.machines import SYMBOLS, is_silent_at_exit, logic, random_operators
from support.operators.orders import cases
from support.operators.paper import mono

from cutwater.events import monotone
from cutwater.operators import (
    Operator,
    accumulate,
    batch,
    compose,
    flatten,
    fproduce,
    histogram,
    identity,
    incr_batch,
    map_values,
    produce,
    produce_1,
)

words = st.text(SYMBOLS, max_size=8)
loops = st.text(SYMBOLS, min_size=1, max_size=3)
STATES = 3
DEPTH = 120
"""More than the states of two machines times twice the length of a loop: None is for ever."""


@given(random_operators(), random_operators(), words)
def test_compose_is_the_papers(a, b, lxs):
    expected = machines.produce(machines.comp_op(logic(a), logic(b)), lxs)
    assert list(produce(compose(a, b), lxs)) == list(expected)


@given(random_operators(), random_operators(), words)
def test_eq6_composition_is_production_after_production(a, b, lxs):
    """For finite streams the side condition of (6) always holds."""
    assert list(produce(compose(a, b), lxs)) == list(produce(b, produce(a, lxs)))


def never_falls_silent(op: Operator, loop: str) -> bool:
    """``∀n. produce₁ (skip_op op n) lxs ≠ None``, decided: a machine that is silent for as long
    as it has states, times the loop, is silent for ever.
    """
    later, _ = fproduce(op, islice(cycle(loop), STATES * len(loop)))
    return bool(fproduce(later, islice(cycle(loop), STATES * len(loop)))[1])


def holds_at(a: Operator, b: Operator, loop: str) -> bool:
    """Both sides of (6) on an infinite stream, with the paper's ``produce``."""
    composed = machines.produce(logic(compose(a, b)), cycle(loop), DEPTH)
    after = machines.produce(logic(b), machines.produce(logic(a), cycle(loop), DEPTH), DEPTH)
    return list(islice(composed, 15)) == list(islice(after, 15))


@given(random_operators(), random_operators(), loops)
def test_eq6_composition_on_infinite_streams(a, b, loop):
    assume(never_falls_silent(a, loop) or is_silent_at_exit(b, range(STATES)))
    assert holds_at(a, b, loop)


@given(random_operators(), random_operators(), loops)
def test_eq6_the_library_agrees_where_outputs_go_on(a, b, loop):
    both = compose(a, b)
    outputs = 10
    assume(len(fproduce(both, islice(cycle(loop), DEPTH))[1]) >= outputs)
    left = islice(produce(both, cycle(loop)), outputs)
    right = islice(produce(b, produce(a, cycle(loop))), outputs)
    assert list(left) == list(right)


def test_eq6_fails_if_a_falls_silent_and_b_speaks_at_the_end():
    """The side condition is needed: on the left nothing comes, on the right the end of `b`."""
    silent = Operator(None, lambda state, _: (state, ()))
    speaks = Operator(None, lambda state, event: (state, (event,)), lambda _: ("end",))
    composed = machines.produce(logic(compose(silent, speaks)), count())
    after = machines.produce(logic(speaks), machines.produce(logic(silent), count()))
    assert (list(composed), list(after)) == ([], ["end"])
    assert not holds_at(silent, speaks, "a")
    assert produce_1(compose(silent, speaks), count(), depth=10_000) is None


@given(random_operators(), random_operators(), loops, st.integers(0, 12))
def test_eq7_a_silent_composition_has_a_silent_second_operator(a, b, loop, n):
    assume(produce_1(compose(a, b), cycle(loop), depth=DEPTH) is None)
    prefix = fproduce(a, islice(cycle(loop), DEPTH))[1][:n]
    assert fproduce(b, prefix)[1] == []


@given(random_operators(), random_operators(), random_operators(), words)
def test_composition_is_associative(a, b, c, lxs):
    expected = list(produce(compose(a, b, c), lxs))
    assert list(produce(compose(a, compose(b, c)), lxs)) == expected
    assert list(produce(compose(compose(a, b), c), lxs)) == expected


@given(random_operators(), words)
def test_identity_is_the_unit_of_composition(op, lxs):
    expected = list(produce(op, lxs))
    assert list(produce(compose(op, identity()), lxs)) == expected
    assert list(produce(compose(identity(), op), lxs)) == expected
    assert list(produce(compose(op), lxs)) == expected
    assert list(produce(compose(), lxs)) == list(lxs)


def listed(time, value):
    return [(time, value)]


PIPELINES = [
    compose(batch(), accumulate(), map_values(lambda _, batch: batch[:1]), flatten()),
    compose(map_values(listed), accumulate(), flatten()),
    compose(histogram(), batch(), flatten()),
    compose(incr_batch(), map_values(listed), accumulate()),
    compose(batch(), batch(), batch()),
]


@given(cases(), st.sampled_from(PIPELINES))
def test_compositions_preserve_monotonicity(case, op):
    outputs = list(produce(op, case.lxs))
    assert mono(outputs, case.seen)
    assert monotone(outputs, case.seen)


@given(infinite_streams(), st.sampled_from(PIPELINES))
def test_compositions_preserve_productivity(stream, op):
    assert overdue(op, stream) == []
