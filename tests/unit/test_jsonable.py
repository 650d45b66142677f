"""Any value as plain data, that JSON carries and gives back the same."""

import datetime as dt
import enum
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.jsonable import plain, shown


@dataclass(frozen=True)
class Reading:
    value: object
    unit: str = "°C"


class Point(NamedTuple):
    x: object
    y: object


class Click(msgspec.Struct, frozen=True):
    user: object
    at: object = None


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


class Level(enum.IntEnum):
    LOW = 1


class Name(str):
    pass


TEXT = st.text() | st.text(st.sampled_from("a\ud800\udfff$\\"))  # with lone surrogates
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(2**63 - 2, 2**64 + 2),
    st.floats(),
    TEXT,
    st.binary(),
    st.decimals(),
    st.datetimes(),
    st.dates(),
    st.timedeltas(dt.timedelta(days=-1000), dt.timedelta(days=1000)),
    st.sampled_from([Colour.RED, Colour.BLUE, Level.LOW, Name("n"), 2j, range(3)]),
)
KEYS = st.one_of(TEXT, st.integers(), st.tuples(st.integers(), TEXT), st.sampled_from(["$", "$a"]))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
        st.builds(Reading, inner),
        st.builds(Point, inner, inner),
        st.builds(Click, inner, inner),
        st.frozensets(st.one_of(st.integers(), TEXT, st.booleans()), max_size=3),
    ),
    max_leaves=8,
)


@given(VALUES)
def test_plain_data_survives_json(value):
    """Also NaN, infinities, large integers, lone surrogates, bytes, records in records."""
    carried = msgspec.json.decode(msgspec.json.encode(plain(value)))
    assert carried == plain(value)
    assert repr(carried) == repr(plain(value))  # and 1 stays 1, not 1.0 or True
    assert isinstance(shown(carried), str)


@given(VALUES)
def test_what_is_plain_is_plain_again(value):
    assert plain(value) == plain(value)
    assert "\n" not in shown(plain(value)).replace("\\n", "") or "\n" in repr(value)


def kind(value):
    """What the library tells apart: types, with a bool no int and no 1 a 1.0."""
    return type(value).__name__, repr(value)


@given(LEAVES, LEAVES)
def test_different_leaves_are_different_data(one, other):
    if kind(one) != kind(other) and not (type(one) is type(other) and one == other):
        assert repr(plain(one)) != repr(plain(other)) or {type(one), type(other)} == {str, Name}


PAIRS = [
    (None, None),
    (True, True),
    (3, 3),
    (2**63 - 1, 2**63 - 1),
    (2**63, {"$int": "9223372036854775808"}),
    (-(2**63), -(2**63)),
    (-(2**63) - 1, {"$int": "-9223372036854775809"}),
    (1.5, 1.5),
    (float("nan"), {"$float": "nan"}),
    (float("-inf"), {"$float": "-inf"}),
    ("é", "é"),
    ("\ud800", {"$text": "\\ud800"}),
    (b"\x00\xff", {"$bytes": "00ff"}),
    (bytearray(b"a"), {"$bytes": "61"}),
    (Decimal("1.50"), {"$decimal": "1.50"}),
    (dt.datetime(2020, 1, 2, 3, tzinfo=dt.UTC), {"$datetime": "2020-01-02T03:00:00+00:00"}),
    (dt.date(2020, 1, 2), {"$date": "2020-01-02"}),
    (dt.timedelta(seconds=1.5), {"$seconds": 1.5}),
    ([1, [2]], [1, [2]]),
    ((1, (2,)), {"$tuple": [1, {"$tuple": [2]}]}),
    ({3, 1, 2}, {"$set": [1, 2, 3]}),
    ({"a": (1,)}, {"a": {"$tuple": [1]}}),
    ({1: 2}, {"$dict": [[1, 2]]}),
    ({"$tuple": [1]}, {"$dict": [["$tuple", [1]]]}),
    (Colour.RED, {"$enum": "Colour.RED"}),
    (Level.LOW, {"$enum": "Level.LOW"}),
    (Reading((1,)), {"$": "Reading", "value": {"$tuple": [1]}, "unit": "°C"}),
    (Point(1, None), {"$": "Point", "x": 1, "y": None}),
    (Click("u"), {"$": "Click", "user": "u", "at": None}),
    (2j, {"$repr": "2j"}),
    (Reading, {"$repr": repr(Reading)}),
]


@pytest.mark.parametrize(("value", "expected"), PAIRS, ids=lambda v: ascii(v)[:30])
def test_the_form_of_each_type(value, expected):
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)


def test_a_dict_with_a_lone_surrogate_for_a_key():
    """Regression: the key became an object, which is no key."""
    assert plain({"\ud800": 1}) == {"$dict": [[{"$text": "\\ud800"}, 1]]}


def test_equal_dicts_and_sets_are_equal_data_in_whatever_order_they_were_filled():
    assert plain({1: "a", 2: "b"}) == plain({2: "b", 1: "a"})
    assert plain({"x": 1, "y": 2}) == plain({"y": 2, "x": 1})
    assert plain({"b", "a", "c"}) == plain({"c", "a", "b"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1,), "(1,)"),
        ((), "()"),
        ((1, "a"), "(1, 'a')"),
        ({1, 2}, "{1, 2}"),
        ({"a": [1]}, "{'a': [1]}"),
        ({1: (2,)}, "{1: (2,)}"),
        ({}, "{}"),
        (Reading(Decimal("1.5")), "Reading(value=1.5, unit='°C')"),
        (Point(None, True), "Point(x=None, y=True)"),
        (float("inf"), "inf"),
        (2**70, str(2**70)),
        (dt.timedelta(minutes=1), "60.0 s"),
        (Colour.BLUE, "Colour.BLUE"),
        (b"\x01", "01"),
    ],
)
def test_shown_as_a_person_would_write_it(value, expected):
    assert shown(plain(value)) == expected
