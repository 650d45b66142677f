"""Values come back as they were, whatever types msgspec can tell apart by itself."""

import datetime as dt
import enum
import uuid
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Generic, NamedTuple, Optional, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.codec import Codec, Plain
from cutwater.errors import FlowError, InputError
from cutwater.times import Product

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Point:
    x: int
    y: float


@dataclass(frozen=True)
class Named:
    name: str
    x: int | None = None


@dataclass
class Everything:
    point: Point
    maybe: Named | None
    points: list[Point]
    by_name: dict[str, Point]
    by_number: dict[int, list[str]]
    pair: tuple[int, str]
    many: tuple[Decimal, ...]
    letters: set[str]
    when: dt.datetime
    day: dt.date
    took: dt.timedelta
    price: Decimal
    colour: Colour
    scalar: int | str | None
    raw: bytes
    is_on: bool


class Struct(msgspec.Struct):
    a: int
    b: str


class Tuple(NamedTuple):
    a: int
    b: str


@dataclass
class Box(Generic[T]):
    content: T
    size: int


@dataclass(frozen=True)
class Holder:
    either: Point | Named
    many: tuple[Point | Named, ...] = ()


@dataclass
class Fresh:
    """What is not given cannot be given back."""

    either: Point | Named
    made: int = field(init=False, default=0)


class Opaque:
    pass


INTEGERS = st.integers(-(2**63), 2**64 - 1)
FLOATS = st.floats(allow_nan=False)
POINTS = st.builds(Point, INTEGERS, FLOATS)
NAMED = st.builds(Named, st.text(), st.none() | INTEGERS)
EVERYTHING = st.builds(
    Everything,
    point=POINTS,
    maybe=st.none() | NAMED,
    points=st.lists(POINTS, max_size=3),
    by_name=st.dictionaries(st.text(), POINTS, max_size=3),
    by_number=st.dictionaries(INTEGERS, st.lists(st.text(), max_size=2), max_size=3),
    pair=st.tuples(INTEGERS, st.text()),
    many=st.lists(st.decimals(allow_nan=False), max_size=3).map(tuple),
    letters=st.sets(st.text(), max_size=3),
    when=st.datetimes() | st.datetimes(timezones=st.just(dt.UTC)),
    day=st.dates(),
    took=st.timedeltas(),
    price=st.decimals(allow_nan=False),
    colour=st.sampled_from(Colour),
    scalar=st.none() | INTEGERS | st.text(),
    raw=st.binary(),
    is_on=st.booleans(),
)


def round_trip(tp, value):
    return Codec(tp).decode(Codec(tp).encode(value))


@given(EVERYTHING)
def test_a_record_comes_back_as_it_was(record):
    back = round_trip(Everything, record)
    assert back == record
    assert back.when.tzinfo == record.when.tzinfo


@given(st.one_of(POINTS, NAMED, st.none(), st.lists(INTEGERS)))
def test_a_union_of_records_tells_its_members_apart(value):
    back = round_trip(Point | Named | None | list[int], value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    ("tp", "value"),
    [
        (int, 5),
        (float, float("inf")),
        (str, "ä"),
        (Struct, Struct(1, "b")),
        (Tuple, Tuple(1, "b")),
        (dict[str, int], {"a": 1}),
        (Any, {"a": [1, None]}),
        (Optional[Point], Point(1, 2.0)),  # noqa: UP045 - the old spelling works, too
        (tuple[tuple[int, Point], ...], ((1, Point(1, 2.0)),)),
        (Holder, Holder(Named("a"), (Point(1, 2.0), Named("b")))),
        (tuple[Point | Named, ...], (Point(1, 2.0), Named("a"))),
        (list[Point | Named], []),
        (tuple[int, Point | Named], (1, Named("a"))),
        (dict[str, Point | Named], {"a": Named("b")}),
        (frozenset[Point | Named], frozenset([Point(1, 2.0)])),
        (Counter[Point], Counter({Point(1, 2.0): 3})),
        (Counter[Point | Named] | None, Counter({Named("a"): 3})),
        (tuple[int, ...] | tuple[str, ...], ("a",)),
        (tuple[tuple[int, str], ...] | tuple[tuple[int, Point], ...], ((1, Point(1, 2.0)),)),
        (Box[Point], Box(Point(1, 2.0), 1)),
    ],
)
def test_other_types_come_back_too(tp, value):
    back = round_trip(tp, value)
    assert back == value
    assert type(back) is type(value)


def test_a_whole_number_fits_a_float_in_a_union_of_records():
    assert round_trip(Point | Named | float, 3) == 3.0


def test_equal_records_have_equal_bytes():
    assert Codec(Point).encode(Point(1, 2.0)) == Codec(Point).encode(Point(1, 2.0))


@pytest.mark.parametrize("value", [Opaque(), "a", 1.5])
def test_a_value_outside_the_union_gets_a_sentence(value):
    with pytest.raises(InputError, match="value-of-another-type"):
        Codec(Point | Named).encode(value)


@dataclass
class Keeper:
    opaque: list[Opaque]


@pytest.mark.parametrize("tp", [Opaque, Keeper, Point | Opaque, list[Opaque], complex, Fresh])
def test_a_type_that_cannot_be_encoded_is_refused_before_the_first_value(tp):
    with pytest.raises(FlowError, match="type-without-encoding"):
        Codec(tp)


KEYS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(),
        st.binary(),
        st.decimals(allow_nan=False),
        st.fractions(),
        st.datetimes(),
        st.datetimes(timezones=st.just(dt.UTC)),
        st.dates(),
        st.timedeltas(),
        st.uuids(),
    ),
    lambda keys: st.tuples(keys, keys) | st.tuples() | st.frozensets(keys, max_size=3),
    max_leaves=5,
)


@given(KEYS)
def test_a_plain_key_says_itself_what_it_is(key):
    back = round_trip(Plain, key)
    assert back == key
    assert type(back) is type(key)


@pytest.mark.parametrize("key", [Point(1, 2.0), Colour.RED, (1, Point(1, 2.0))])
def test_a_key_that_cannot_say_what_it_is_gets_a_sentence(key):
    with pytest.raises(InputError, match="key-without-a-type"):
        Codec(Plain).encode(key)


def test_a_plain_key_may_be_part_of_a_larger_type():
    value = ((Decimal(1), Fraction(1, 3), uuid.UUID(int=5)), 7)
    assert round_trip(tuple[Plain, int], value) == value


TIMES = [
    Product(1, (2, 0)),
    Product(dt.datetime(2024, 2, 28), (0,)),
    Product(Product(dt.date(2024, 2, 28), Decimal("1.0")), ()),
]


@pytest.mark.parametrize("time", TIMES, ids=repr)
@pytest.mark.parametrize("tp", [Product, Product | None, tuple[tuple[Product, str], ...]], ids=str)
def test_the_parts_of_a_pair_of_times_come_back_as_what_they_were(tp, time):
    """Rounds of loops are tuples; as lists they would have no place in the order."""
    value = ((time, "a"),) if tp not in (Product, Product | None) else time
    codec = Codec(tp)
    assert codec.decode(codec.encode(value)) == value
