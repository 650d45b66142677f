import datetime as dt
import enum
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import (
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    Protocol,
    TypedDict,
    TypeVar,
)

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.errors import FlowError, InputError
from cutwater.records import Codec, describe, fields_of, fits, is_immutable, members, union_of

T = TypeVar("T")
Metres = NewType("Metres", float)


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


class HasX(Protocol):
    x: int


class Dictionary(TypedDict):
    x: int


class Plain:
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


@pytest.mark.parametrize("value", [Plain(), "a", 1.5])
def test_a_value_outside_the_union_gets_a_sentence(value):
    with pytest.raises(InputError, match="value-of-another-type"):
        Codec(Point | Named).encode(value)


@dataclass
class Holder:
    either: Point | Named


@dataclass
class Keeper:
    plain: list[Plain]


@pytest.mark.parametrize("tp", [Plain, Keeper, Holder, Point | Plain, list[Plain], complex])
def test_a_type_that_cannot_be_encoded_is_refused_before_the_first_value(tp):
    with pytest.raises(FlowError, match="type-without-encoding"):
        Codec(tp)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (bool, int),
        (int, float),
        (bool, float),
        (int, int | str),
        (int | str, str | int | None),
        (int | None, Optional[int]),  # noqa: UP045
        (list[int], list),
        (list, list[int]),
        (list[bool], Sequence[int]),
        (dict[str, int], Mapping[str, float]),
        (dict[str, int], Iterable[str]),
        (tuple[int, int], tuple[int, ...]),
        (tuple[int, ...], tuple[int, int]),
        (tuple[tuple[int, str], ...], tuple[tuple[Any, Any], ...]),
        (Any, int),
        (int, Any),
        (int, object),
        (int, T),
        (list[int], list[T]),
        (Literal["a", "b"], str),
        (str, Literal["a"]),
        (Metres, float),
        (float, Metres),
        (typing.Annotated[int, "unit"], int),
        (None, type(None)),
        (Point, HasX),
        (dict, Dictionary),
        (Box[int], Box[int]),
        (Box[int], Box),
        (Tuple, tuple),
    ],
)
def test_a_type_fits(given, wanted):
    assert fits(given, wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (int, bool),
        (float, int),
        (int | str, int),
        (int | None, int),
        (list[str], list[int]),
        (list[int], tuple[int, ...]),
        (tuple[str, int], tuple[int, ...]),
        (tuple[int, int, int], tuple[int, int]),
        (Point, Named),
        (Literal["a", 1], str),
        (Metres, str),
        (dict[str, str], dict[str, int]),
        (Box[int], Box[str]),
    ],
)
def test_a_type_does_not_fit(given, wanted):
    assert not fits(given, wanted)


TYPES = st.sampled_from([int, str, float, Point, list[int], None | int, int | str, Any])


@given(TYPES, TYPES)
def test_each_of_two_types_fits_their_union(a, b):
    both = union_of([a, b])
    assert fits(a, both)
    assert fits(b, both)


def test_the_members_of_a_union_are_each_listed_once():
    assert members(union_of([int | str, str, Point, int])) == (int, str, Point)
    assert union_of([]) is Any
    assert union_of([int, Any]) is Any


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        (int, "int"),
        (Point, "Point"),
        (int | None, "int | None"),
        (dict[str, int], "dict[str, int]"),
        (Any, "Any"),
        (Point | Named, "Point | Named"),
    ],
)
def test_a_type_is_described_as_a_user_writes_it(tp, text):
    assert describe(tp) == text


@pytest.mark.parametrize(
    ("tp", "fields"),
    [
        (Point, {"x": int, "y": float}),
        (Struct, {"a": int, "b": str}),
        (Tuple, {"a": int, "b": str}),
        (Point | Named, {"x": int | None}),
        (Point | None, {}),
        (int, {}),
        (dict, {}),
        (Any, None),
        (Box[int], {"content": T, "size": int}),
    ],
)
def test_the_fields_of_a_type(tp, fields):
    assert fields_of(tp) == fields


def test_an_annotation_that_cannot_be_resolved_gets_a_sentence():
    @dataclass
    class Lost:
        x: "Nowhere"  # noqa: F821

    with pytest.raises(FlowError, match=r"annotations of .*Lost cannot be resolved"):
        fields_of(Lost)


@dataclass(frozen=True)
class Frozen:
    items: Any
    more: Any = field(default=())


@pytest.mark.parametrize(
    "value", [None, 1, True, "a", b"", 1j, (1, ("a",)), frozenset([1]), Frozen((1,))]
)
def test_what_cannot_change_is_immutable(value):
    assert is_immutable(value)


@pytest.mark.parametrize(
    "value", [[], {}, set(), ([],), Frozen([]), Frozen(1, {}), Plain(), Struct(1, "")]
)
def test_what_can_change_is_not(value):
    assert not is_immutable(value)
