"""The minimal times of a multiset, as they come and go."""

from hypothesis import given
from hypothesis import strategies as st

from cutwater.progress.minima import Minima
from cutwater.times import Product, minimal

TIMES = st.one_of(
    st.lists(st.integers(0, 5), max_size=8),
    st.lists(st.builds(Product, st.integers(0, 2), st.integers(0, 2)), max_size=8),
)


def test_what_a_lost_minimum_covered_is_minimal_among_itself():
    minima = Minima()
    for time in (1, 5, 3):
        minima.add(time, 1)
    minima.settle()
    minima.add(1, -1)
    assert sorted(minima.settle()) == [(1, -1), (3, 1)]
    assert minima.elements == [3]


@given(TIMES, st.data())
def test_they_are_those_of_what_is_there(times, data):
    minima = Minima()
    there = list(times)
    for time in there:
        minima.add(time, 1)
    changes = dict(minima.settle())
    while there:
        assert set(minima.elements) == set(minimal(there))
        assert len(minima.elements) == len(set(minima.elements))
        gone = there.pop(data.draw(st.integers(0, len(there) - 1)))
        minima.add(gone, -1)
        for time, change in minima.settle():
            changes[time] = changes.get(time, 0) + change
        assert {time for time, n in changes.items() if n} == set(minima.elements)
    assert minima.elements == []
