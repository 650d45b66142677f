"""Multisets of elements, against the standard library's counters."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cutwater.semantics.delivery.system import Element, bag

lists = st.lists(
    st.builds(Element, st.sampled_from(["in", "out"]), st.sampled_from("abc")), max_size=6
)


@given(lists, lists)
def test_sum_difference_and_inclusion_count_elements(xs, ys):
    mine, theirs = bag(*xs), bag(*ys)
    assert Counter(mine + theirs) == Counter(xs) + Counter(ys)
    assert Counter(mine - theirs) == Counter(xs) - Counter(ys)
    assert (mine <= theirs) == (Counter(xs) <= Counter(ys))
    assert (mine == theirs) == (Counter(xs) == Counter(ys))
    assert mine != theirs or hash(mine) == hash(theirs)


@given(lists)
def test_each_once_and_by_kind(xs):
    found = bag(*xs)
    assert sorted(set(xs)) == list(found.distinct())
    assert list(found.of_kind("in")) == sorted({x for x in xs if x.kind == "in"})
    assert all(found.count(x) == xs.count(x) and x in found for x in xs)
    assert len(found) == len(xs)
