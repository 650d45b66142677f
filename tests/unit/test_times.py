import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operators.orders import any_order, partial_orders

from cutwater.errors import InputError
from cutwater.times import (
    Antichain,
    Left,
    Product,
    Right,
    Time,
    check_order,
    in_rounds,
    just_before,
    maximal,
    minimal,
    rounds_of,
)

some_times = any_order().flatmap(
    lambda times: st.tuples(st.just(times), st.lists(st.sampled_from(times)))
)
"""An order, and some of its times."""


# P3's times of nested scopes: the first two are incomparable.
def test_products_are_compared_component_by_component():
    assert not Product(1, 5) <= Product(2, 0)
    assert not Product(2, 0) <= Product(1, 5)
    assert Product(1, 5) <= Product(1, 5)
    assert Product(1, 5) <= Product(2, 5)
    assert Product(1, 5) <= Product(2, 6)


def test_strictly_less_is_less_and_not_equal():
    assert Product(1, 5) < Product(1, 6)
    assert not Product(1, 5) < Product(1, 5)
    assert Left(1) < Left(2)
    assert not Left(1) < Left(1)
    assert not Left(1) < Right(2)


def test_products_nest():
    assert Product(Product(0, 1), 2) <= Product(Product(1, 1), 2)
    assert not Product(Product(0, 2), 2) <= Product(Product(1, 1), 2)


def test_times_inside_loops_are_an_order():
    rounds = [(i, j) for i in range(3) for j in range(3)]
    check_order([in_rounds(t, r) for t in range(2) for r in rounds])


def test_rounds_are_compared_lexicographically_and_input_times_by_their_own_order():
    """The outer round decides: the inner loop comes back through the outer feedback at (i+1, 0)."""
    assert in_rounds(3, (0, 1)) <= in_rounds(3, (1, 0))
    assert not in_rounds(3, (0, 1)) <= in_rounds(4, (0, 0))
    assert not in_rounds(4, (0, 0)) <= in_rounds(3, (0, 1))


def test_rounds_are_replaced_and_not_nested():
    assert in_rounds(in_rounds("t", (4,)), (5, 0)) == Product("t", (5, 0))
    assert in_rounds(in_rounds("t", (4,)), ()) == "t"
    assert rounds_of(in_rounds(Product(1, 2), (3,))) == (3,)
    assert in_rounds(in_rounds(Product(1, 2), (3,)), ()) == Product(1, 2)


def test_the_sides_are_unrelated():
    assert Left(1) <= Left(2)
    assert Right(1) <= Right(2)
    assert not Left(1) <= Right(2)
    assert not Right(1) <= Left(2)
    assert Left(1) != Right(1)
    assert len({Left(1), Right(1), Left(1)}) == 2


def test_the_opposite_is_the_same_time_on_the_other_side():
    assert Left(1).opposite == Right(1)
    assert Right(1).opposite == Left(1)


@pytest.mark.parametrize("time", [Product(1, 2), Left(1)])
def test_other_values_are_not_compared(time):
    with pytest.raises(TypeError):
        time <= 3  # noqa: B015
    with pytest.raises(TypeError):
        time < 3  # noqa: B015


def test_what_can_be_hashed_and_ordered_is_a_time():
    assert isinstance(3, Time)
    assert isinstance(Product(1, 2), Time)
    assert not isinstance([1], Time)


# The examples in the documentation of timely dataflow's antichain.
def test_an_antichain_keeps_minimal_elements():
    empty = Antichain()
    two = empty.insert(2)
    assert two != empty
    assert two.insert(3) is two
    assert list(two.insert(1)) == [1]
    assert two.insert(2) is two


def test_what_an_antichain_is_below():
    two = Antichain([2])
    assert [two.less_equal(time) for time in (1, 2, 3)] == [False, True, True]
    assert [two.less_than(time) for time in (1, 2, 3)] == [False, False, True]


def test_the_empty_antichain_is_below_nothing():
    assert not any(Antichain().less_equal(time) for time in range(-5, 5))
    assert not any(Antichain().less_than(time) for time in range(-5, 5))


def test_antichains_are_equal_as_sets():
    one, other = Product(1, 5), Product(2, 0)
    assert Antichain([one, other]) == Antichain([other, one])
    assert hash(Antichain([one, other])) == hash(Antichain([other, one]))
    assert len(Antichain([one, other])) == 2
    assert Antichain([one]) != [one]
    assert repr(Antichain([2, 1])) == "Antichain([1])"


@given(some_times)
def test_an_antichain_is_the_same_whatever_the_order_of_insertion(given_):
    _, times = given_
    one_by_one = Antichain()
    for time in times:
        one_by_one = one_by_one.insert(time)
    assert one_by_one == Antichain(reversed(times)) == Antichain(times)


@given(some_times)
def test_an_antichain_is_below_what_something_inserted_is_below(given_):
    times, inserted = given_
    antichain = Antichain(inserted)
    for time in times:
        assert antichain.less_equal(time) == any(other <= time for other in inserted)
        assert antichain.less_than(time) == any(
            other <= time and other != time for other in inserted
        )


@given(some_times)
def test_maximal_and_minimal_by_their_definition(given_):
    _, times = given_
    distinct = list(dict.fromkeys(times))
    assert maximal(times) == [
        t for t in distinct if not any(t <= other for other in distinct if other != t)
    ]
    assert minimal(times) == [
        t for t in distinct if not any(other <= t for other in distinct if other != t)
    ]


def test_maximal_and_minimal_of_nothing():
    assert maximal([]) == []
    assert minimal([]) == []


@given(partial_orders())
def test_a_partial_order_passes(times):
    check_order(times)


@pytest.mark.parametrize(
    "times",
    [
        [],
        [3, 1.0, 2, 3],
        ["b", "a", "ab"],
        [dt.date(2024, 1, 1), dt.date(2023, 1, 1)],
        [Left(1), Right(1), Left(2)],
        [Product(a, Left(b)) for a in range(2) for b in range(2)],
    ],
)
def test_orders_of_python_and_of_the_library_pass(times):
    check_order(times)


@dataclass(frozen=True)
class Hand:
    """Rock, paper and scissors: each is <= the one that beats it."""

    number: int

    def __le__(self, other):
        return (other.number - self.number) % 3 in (0, 1)


@dataclass(frozen=True)
class Strict:
    number: int

    def __le__(self, other):
        return self.number < other.number


@dataclass(frozen=True)
class Unit:
    """Compared by the number alone, although the name matters for equality."""

    number: int
    name: str

    def __le__(self, other):
        return self.number <= other.number


@dataclass(frozen=True, eq=False)
class Folded:
    """Equal if only the case differs, but hashed by what it is."""

    text: str

    def __eq__(self, other):
        return self.text.lower() == other.text.lower()

    def __hash__(self):
        return hash(self.text)

    def __le__(self, other):
        return self.text.lower() <= other.text.lower()

    def __repr__(self):
        return self.text


class Cased(Folded):
    """Equal if only the case differs, but ordered with it."""

    def __hash__(self):
        return hash(self.text.lower())

    def __le__(self, other):
        return self.text <= other.text


class Unhashable(Folded):
    __hash__ = None


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([Strict(1)], "Strict(number=1) is not <= itself; an order is reflexive"),
        (
            [Unit(1, "s"), Unit(1, "ms")],
            "Unit(number=1, name='s') <= Unit(number=1, name='ms') and "
            "Unit(number=1, name='ms') <= Unit(number=1, name='s'), "
            "but they are not equal; an order is antisymmetric",
        ),
        (
            [Hand(0), Hand(1), Hand(2)],
            "Hand(number=0) <= Hand(number=1) and Hand(number=1) <= Hand(number=2), "
            "but not Hand(number=0) <= Hand(number=2); an order is transitive",
        ),
        ([Folded("a"), Folded("A")], "a == A, but their hashes differ; times are kept in sets"),
        (
            [Cased("a"), Cased("A")],
            "a == A, but one is not <= the other; an order is reflexive",
        ),
        ([Unhashable("a")], "a cannot be hashed; times are kept in sets"),
        (
            [1, "a"],
            "1 and 'a' cannot be compared by <=; unrelated times are not <= each other",
        ),
        ([1.0, math.nan], "nan is not <= itself; an order is reflexive"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value[-1]).__name__,
)
def test_what_is_no_order_is_reported_with_the_offending_values(samples, message):
    with pytest.raises(InputError) as told:
        check_order(samples)
    (problem,) = told.value.problems
    assert problem.code == "not-an-order"
    assert problem.message == message
    assert problem.hint


@pytest.mark.parametrize(
    ("time", "before"),
    [
        (10, 9),
        (0, -1),
        (1.0, 0.9999999999999999),
        (Decimal("1.0"), Decimal("0.9999999999999999999999999999")),
        (dt.datetime(2024, 1, 1), dt.datetime(2023, 12, 31, 23, 59, 59, 999999)),
        (
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
            dt.datetime(2023, 12, 31, 23, 59, 59, 999999, dt.UTC),
        ),
        (dt.date(2024, 3, 1), dt.date(2024, 2, 29)),
        (dt.timedelta(seconds=1), dt.timedelta(microseconds=999_999)),
        (math.inf, 1.7976931348623157e308),
    ],
)
def test_just_before(time, before):
    assert just_before(time) == before
    assert just_before(time) < time
    assert type(just_before(time)) is type(time)


@pytest.mark.parametrize("time", ["a", True, Product(1, 2), Left(1), None])
def test_other_kinds_have_no_time_just_before(time):
    with pytest.raises(InputError, match="only numbers, dates, datetimes and durations"):
        just_before(time)


@pytest.mark.parametrize(
    "time",
    [
        -math.inf, math.nan, Decimal("-Infinity"), Decimal("NaN"), dt.datetime.min, dt.date.min,
        dt.timedelta.min,
    ],
)  # fmt: skip
def test_the_smallest_of_a_kind_has_no_time_just_before(time):
    with pytest.raises(InputError, match=r"has no \w+ before it"):
        just_before(time)
