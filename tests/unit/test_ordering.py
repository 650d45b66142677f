import dataclasses
import datetime as dt
import enum
import math
import subprocess
import sys
import uuid
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cutwater.errors import InputError
from cutwater.ordering import NO_KEY, bucket_of, canonical, canonical_of, order_bytes


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Shape(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    A = "a"


@dataclasses.dataclass(frozen=True)
class Place:
    row: int
    name: str
    note: str = dataclasses.field(default="", compare=False)


class Pair(NamedTuple):
    a: int
    b: int


BERLIN = dt.timezone(dt.timedelta(hours=2))
INTEGERS = st.one_of(st.integers(), st.builds(int.__lshift__, st.integers(), st.integers(0, 3000)))
NUMBERS = st.one_of(
    INTEGERS,
    st.booleans(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.integers(-3, 3).map(float),
    st.integers(-3, 3).map(Decimal),
)
SIMPLE = st.one_of(
    st.none(),
    NUMBERS,
    st.text(),
    st.binary(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([dt.UTC, BERLIN])),
    st.dates(),
    st.timedeltas(),
    st.uuids(),
    st.sampled_from([*Colour, *Shape, *Level, *Word]),
)
KEYS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Place, inner, inner, inner),
    ),
    max_leaves=5,
)


@given(KEYS, KEYS)
@example(1, True)
@example("1", 1)
@example((), frozenset())
@example(("a", "b"), ("ab",))
@example(("a\0", "b"), ("a", "\0b"))
@example((b"a\0\0", b""), (b"a", b"\0\0"))
@example((b"a\0\0\x11b",), (b"a", b"b"))
@example(((1,), 2), (1, (2,)))
@example(dt.datetime(2024, 1, 1), dt.date(2024, 1, 1))
@example(Colour.RED, Shape.RED)
@example(Colour.RED, 1)
@example(Place(1, "a"), (1, "a"))
@example(Decimal("1e400"), Decimal("1e401"))
@example(Decimal("1e400"), math.inf)
@example(0.5, "1/2")
def test_bytes_are_equal_exactly_for_equal_keys(a, b):
    assert (canonical(a) == canonical(b)) == (a == b)


@given(NUMBERS, NUMBERS)
def test_bytes_of_numbers_are_equal_exactly_for_equal_numbers(a, b):
    assert (canonical(a) == canonical(b)) == (a == b)


@pytest.mark.parametrize(
    "equal",
    [
        [1, 1.0, True, Decimal(1), Decimal("1.00"), Fraction(2, 2), Level.LOW],
        [0, 0.0, -0.0, False, Decimal("-0.0")],
        [0.5, Decimal("0.5"), Fraction(1, 2)],
        [math.nan, -math.nan, Decimal("nan"), float("nan")],
        [math.inf, Decimal("inf")],
        ["a", Word.A],
        [(1, 2), Pair(1, 2), (1.0, True + 1)],
        [dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 14, tzinfo=BERLIN)],
        [Place(1, "a"), Place(1, "a", note="not compared")],
        [frozenset("ab"), frozenset("ba")],
    ],
)
def test_one_key_in_several_spellings(equal):
    assert len({canonical(value) for value in equal}) == 1


def test_keys_of_different_types_never_meet():
    different = [
        None, 0, 1, -1, 0.1, Decimal("0.1"), math.nan, math.inf, -math.inf, "", "1", "None", b"",
        b"1", (), (None,), (1,), ((1,),), frozenset(), frozenset([1]), dt.date(1970, 1, 1),
        dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(),
        uuid.UUID(int=0), Colour.RED, Colour.BLUE, Shape.RED, Place(1, "a"),
    ]  # fmt: skip
    assert len({canonical(value) for value in different}) == len(different)
    assert NO_KEY not in {canonical(value) for value in different}


@given(INTEGERS, INTEGERS)
def test_integers_sort_as_they_do_in_python(a, b):
    assert (canonical(a) < canonical(b)) == (a < b)


@pytest.mark.parametrize(
    "edge", [0, 255, 256, 2**64, 2 ** (8 * 254), 2 ** (8 * 255), 2 ** (8 * 256)]
)
def test_integers_sort_at_the_edges_of_their_lengths(edge):
    around = [n for edge_ in (-edge, edge) for n in (edge_ - 1, edge_, edge_ + 1)]
    assert sorted(around, key=canonical) == sorted(around)


@given(st.text(), st.text())
def test_text_sorts_as_it_does_in_python(a, b):
    assert (canonical(a) < canonical(b)) == (a < b)


@pytest.mark.parametrize("kind", [st.datetimes(), st.datetimes(timezones=st.just(BERLIN))])
def test_datetimes_sort_as_they_do_in_python(kind):
    @given(kind, kind)
    def sorts(a, b):
        assert (canonical(a) < canonical(b)) == (a < b)

    sorts()


@given(st.lists(st.lists(st.text(), max_size=3).map(tuple), max_size=6))
def test_tuples_of_text_sort_as_they_do_in_python(keys):
    assert sorted(keys, key=canonical) == sorted(keys)


LONG = {"decimal": Decimal("1e-5000"), "fraction": Fraction(1, 10**5000), "integer": 10**5000}


@pytest.mark.parametrize("value", LONG.values(), ids=LONG)
def test_numbers_of_any_length_are_keys(value):
    assert canonical(value) == canonical(value * 1)
    assert canonical(value) != canonical(value * 3)


@pytest.mark.parametrize("value", [[1], {1: 2}, {1}, object(), ([1],), 1j, Colour, bytearray(b"a")])
def test_what_is_no_key_gets_a_sentence(value):
    with pytest.raises(InputError) as raised:
        canonical(value)
    assert raised.value.problems[0].code == "not-a-key"


# These must never change: a bucket is fixed for life, in every checkpoint there is.
PINNED = {
    None: "01",
    0: "038100",
    1: "03810101",
    -1: "037eff",
    256: "0381020100",
    -257: "037efdfeff",
    0.5: "038100312f32",
    math.inf: "04",
    "": "10",
    "ada": "10616461",
    b"\0": "1100",
    (1, "a"): "4003810101000010610000",
    dt.date(2024, 2, 29): "2281030b4681",
}


@pytest.mark.parametrize("key", PINNED, ids=repr)
def test_the_bytes_of_a_key_never_change(key):
    assert canonical(key).hex() == PINNED[key]


@pytest.mark.parametrize(
    ("key", "bucket"),
    [("ada", 11), ("ben", 6), ("cy", 8), (1, 12), (2, 5), (None, 0), ((1, "a"), 1), (-1, 14)],
)
def test_the_bucket_of_a_key_never_changes(key, bucket):
    assert bucket_of(canonical(key), 16) == bucket


def test_bytes_and_buckets_do_not_depend_on_the_process():
    program = (
        "from cutwater.ordering import *\n"
        "keys = ['a', ('b', 1), frozenset('abc'), 2.5]\n"
        "print([(canonical(k).hex(), bucket_of(canonical(k), 64)) for k in keys])"
    )
    runs = {
        subprocess.check_output(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(sys.path)},
        )
        for seed in (1, 2)
    }
    assert len(runs) == 1


@pytest.mark.parametrize(
    "keys", [range(4000), [f"user-{n}" for n in range(4000)]], ids=["numbers", "names"]
)
def test_keys_spread_over_the_buckets(keys):
    filled = Counter(bucket_of(canonical(key), 16) for key in keys)
    assert set(filled) == set(range(16))
    assert max(filled.values()) < 1.3 * 4000 / 16


PARTS = st.tuples(
    st.integers(0, 2**63),
    st.integers(0, 3),
    st.binary(max_size=3),
    st.integers(0, 3),
    st.binary(max_size=2),
)
ORDERS = PARTS.flatmap(lambda parts: st.integers(0, 5).map(lambda n: parts[:n]))


@given(ORDERS, ORDERS)
@example((0, 0, b"a"), (0, 0, b"a\0"))
@example((0, 0, b""), (0, 0, b"\0"))
@example((0, 0, b"a", 0), (0, 0, b"a\0", 0))
@example((0, 0, b"\xff", 3), (0, 0, b"\xff\xff", 0))
@example((0, 0, b"a", 5), (0, 0, b"a" + bytes(9) + b"\4", 0))
def test_order_bytes_sort_as_the_tuples_do(a, b):
    assert (order_bytes(a) < order_bytes(b)) == (a < b)
    assert (order_bytes(a) == order_bytes(b)) == (a == b)


TEXTS = st.text(st.characters(exclude_categories=()) | st.sampled_from("\0\x10a\ud800"))


@given(st.lists(TEXTS | INTEGERS | st.none()) | st.lists(TEXTS))
@example(["\0\x10"])
@example([])
def test_many_keys_are_written_as_each_alone(keys):
    assert canonical_of(keys) == [canonical(key) for key in keys]
