"""join_clocks: every pair of a left and a right value, at the product of their times."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cutwater.events import Data, Watermark
from cutwater.operators import produce
from cutwater.operators.join_clocks import join_clocks
from cutwater.times import Left, Product, Right

values = st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc")), max_size=5)


def interleaved(draw, left, right):
    """The two sides in one stream, each in its own order."""
    sides = draw(st.permutations([Left] * len(left) + [Right] * len(right)))
    rest = {Left: iter(left), Right: iter(right)}
    events = []
    for side in sides:
        time, value = next(rest[side])
        events.append(Data(side(time), value))
    return events


@given(st.data(), values, values)
def test_the_pairs_are_the_product_of_the_sides_however_they_are_interleaved(data, left, right):
    made = produce(join_clocks(lambda a, b: a + b), interleaved(data.draw, left, right))
    assert Counter(made) == Counter(Data(Product(t, u), a + b) for t, a in left for u, b in right)


@given(st.data(), values, values)
def test_a_pair_of_which_the_function_makes_none_is_left_out_and_nothing_else(data, left, right):
    op = join_clocks(lambda a, b: 0 if a == b else None)
    made = produce(op, interleaved(data.draw, left, right))
    expected = [Data(Product(t, u), 0) for t, a in left for u, b in right if a == b]
    assert Counter(made) == Counter(expected)


@given(values)
def test_a_watermark_passes_where_it_stands(left):
    both = Watermark(Product(3, 3))
    events = [*(Data(Left(t), v) for t, v in left), both, Data(Right(1), "z")]
    made = list(produce(join_clocks(lambda a, b: a + b), events))
    assert made == [both, *(Data(Product(t, 1), v + "z") for t, v in left)]
