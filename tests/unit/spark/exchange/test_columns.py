"""Values as columns and bytes, and back: nothing is lost on any of the ways."""

import datetime as dt
import enum
import math
import uuid
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.errors import InputError, RunError
from cutwater.spark.exchange.arrow import (
    arrays_of,
    arrow_schema,
    arrow_type,
    is_misfit,
    numbering_of,
    records_in,
)
from cutwater.spark.exchange.batch import EventBatch, joined
from cutwater.spark.exchange.columns import (
    RecordCodec,
    Records,
    joined_values,
    number_keys,
    objects,
)
from cutwater.vectors import Layout


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass(frozen=True)
class Inner:
    x: int
    label: str | None = None


class Pair(NamedTuple):
    left: int
    right: str


@dataclass(frozen=True)
class Whole:
    number: int
    real: float
    is_on: bool
    text: str
    data: bytes
    maybe: int | None
    maybe_text: str | None
    inner: Inner
    maybe_inner: Inner | None
    numbers: list[int]
    many: tuple[float, ...]
    inners: list[Inner]
    tags: frozenset[str]
    by_name: dict[str, int]
    by_number: dict[int, Inner]
    at: dt.datetime
    day: dt.date
    span: dt.timedelta
    price: Decimal
    key: uuid.UUID
    colour: Colour
    level: Level
    colours: list[Colour | None]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
INTS = st.integers(-(2**63), 2**63 - 1)
INNERS = st.builds(Inner, INTS, st.none() | TEXT)
MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC))
PRICES = st.decimals(-(10**15), 10**15, places=6, allow_nan=False)
WHOLES = st.builds(
    Whole,
    number=INTS,
    real=st.floats(width=64),
    is_on=st.booleans(),
    text=TEXT,
    data=st.binary(max_size=4),
    maybe=st.none() | INTS,
    maybe_text=st.none() | TEXT,
    inner=INNERS,
    maybe_inner=st.none() | INNERS,
    numbers=st.lists(INTS, max_size=3),
    many=st.lists(st.floats(allow_nan=False), max_size=3).map(tuple),
    inners=st.lists(INNERS, max_size=2),
    tags=st.frozensets(TEXT, max_size=3),
    by_name=st.dictionaries(TEXT, INTS, max_size=3),
    by_number=st.dictionaries(INTS, INNERS, max_size=2),
    at=MOMENTS,
    day=st.dates(),
    span=st.timedeltas(dt.timedelta(days=-9999), dt.timedelta(days=9999)),
    price=PRICES,
    key=st.uuids(),
    colour=st.sampled_from(Colour),
    level=st.sampled_from(Level),
    colours=st.lists(st.none() | st.sampled_from(Colour), max_size=2),
)
LAYOUT = Layout.of(Whole)
SCHEMA = arrow_schema(LAYOUT, "sink 'out'")


def bits(values):
    """What tells records apart: the types of their fields, and a float by its bits."""
    plain = [replace(v, real=0.0, at=v.at.astimezone(dt.UTC)) for v in values]
    kinds = [[type(getattr(v, name)) for name in LAYOUT.columns] for v in values]
    reals = ["nan" if math.isnan(v.real) else v.real.hex() for v in values]
    return plain, kinds, reals


@given(st.lists(WHOLES, max_size=2))
def test_records_survive_bytes(values):
    codec = RecordCodec(Whole)
    decoded = codec.decode(codec.encode(Records.of(codec.layout, values)))
    assert len(decoded) == len(values)
    assert bits(decoded) == bits(values)


@given(st.lists(WHOLES, min_size=1, max_size=2))
def test_records_survive_arrow(values):
    arrays = arrays_of(LAYOUT, LAYOUT.of_values(values), SCHEMA)
    assert [array.type for array in arrays] == SCHEMA.types
    back = records_in(LAYOUT, arrays, "source 'in'").values
    assert bits(back) == bits(values)


VALUES = {
    int: [1, -(2**63), 2**63 - 1],
    float: [1.5, -0.0, math.inf],
    bool: [True, False],
    str: ["", "ä", "\x00"],
    bytes: [b"", b"\xff"],
    int | None: [1, None],
    float | None: [1.0, None],
    str | None: ["a", None],
    list[int]: [[], [1]],
    dict[str, int]: [{}, {"a": 1}],
    Pair: [Pair(1, "a")],
    Colour: [Colour.RED],
    Level: [Level.LOW],
    uuid.UUID: [uuid.UUID(int=7)],
    Decimal: [Decimal("1.5")],
    dt.date: [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    dt.timedelta: [dt.timedelta(microseconds=-1)],
}


@pytest.mark.parametrize("tp", VALUES, ids=str)
def test_what_is_no_record_is_one_column(tp):
    codec, values = RecordCodec(tp), VALUES[tp]
    layout = codec.layout
    assert repr(list(codec.decode(codec.encode(Records.of(layout, values))))) == repr(values)
    arrays = arrays_of(layout, layout.of_values(values), arrow_schema(layout, "sink 'out'"))
    back = records_in(layout, arrays, "source 'in'").values
    assert [(type(v), v) for v in back] == [(type(v), v) for v in values]


UNSUPPORTED = [int | str, Any, complex, tuple[int, str], Inner | Pair, object, list[Any]]


@pytest.mark.parametrize("tp", UNSUPPORTED, ids=str)
def test_what_has_no_type_of_a_column_is_reported(tp):
    @dataclass
    class Holder:
        thing: tp

    assert arrow_type(tp) is None
    with pytest.raises(RunError) as error:
        arrow_schema(Layout.of(Holder), "sink 'out'")
    assert str(error.value).startswith("[no-column-type] sink 'out' carries Holder, and ")


def test_the_sentence_for_a_type_that_is_no_type_of_a_column():
    with pytest.raises(RunError) as error:
        arrow_schema(Layout.of(int | str), "sink 'out'")
    assert str(error.value) == (
        "[no-column-type] sink 'out' carries int | str, and int | str has no column type\n"
        "  hint: map it to a dataclass of numbers, text, times, and lists and dataclasses of these"
    )


STRUCT = pa.struct([("x", pa.int32()), ("label", pa.string()), ("more", pa.int8())])
# an Arrow type, the annotations that it fits, those that it does not
FITTING = [
    (pa.int8(), [int, float, int | None], [str, bool, Decimal, dt.date]),
    (pa.int64(), [int, float, Level], [str, bool, Colour]),
    (pa.float32(), [float, float | None], [int, bool, str]),
    (pa.float64(), [float], [int, Decimal]),
    (pa.bool_(), [bool, bool | None], [int, float, str]),
    (pa.string(), [str, uuid.UUID, Colour], [int, bytes, dt.date, Level]),
    (pa.large_string(), [str], [bytes]),
    (pa.binary(), [bytes], [str]),
    (pa.large_binary(), [bytes], [str]),
    (pa.timestamp("us"), [dt.datetime], [dt.date, int]),
    (pa.timestamp("us", tz="UTC"), [dt.datetime], [dt.date]),
    (pa.date32(), [dt.date], [dt.datetime, str]),
    (pa.duration("us"), [dt.timedelta], [int]),
    (pa.decimal128(10, 2), [Decimal], [float, int]),
    (pa.list_(pa.int32()), [list[int], frozenset[int], tuple[float, ...]], [list[str], int]),
    (pa.map_(pa.string(), pa.int32()), [dict[str, int]], [dict[int, int], dict[str, str], Inner]),
    (STRUCT, [Inner], [Pair, dict[str, int], int]),
    (pa.list_(STRUCT), [list[Inner]], [Inner]),
]


@pytest.mark.parametrize(("found", "fitting", "others"), FITTING, ids=str)
def test_which_columns_fit_which_types(found, fitting, others):
    assert not [tp for tp in fitting if is_misfit(found, tp)]
    assert not [tp for tp in others if not is_misfit(found, tp)]


@dataclass(frozen=True)
class Row:
    name: str
    size: int
    inner: Inner = field(default_factory=lambda: Inner(0))
    colours: list[Colour] = field(default_factory=list)


ROW = Layout.of(Row)


def read(**columns):
    given = {
        "name": pa.array(["a"]),
        "size": pa.array([1]),
        "inner": pa.array([{"x": 1, "label": None}]),
        "colours": pa.array([["red"]]),
    }
    arrays = list((given | columns).values())
    return records_in(ROW, arrays, "source 'in'").values


def test_rows_are_read():
    assert read() == [Row("a", 1, Inner(1), [Colour.RED])]


def test_an_empty_place_in_a_field_that_has_none_is_reported():
    with pytest.raises(InputError) as error:
        read(size=pa.array([None], pa.int64()))
    assert str(error.value) == (
        "[null-in-a-field] source 'in' has a row without 'size', which is declared int\n"
        "  hint: declare it int | None, or filter such rows out before"
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"inner": pa.array([{"x": None, "label": "a"}])}, "Expected `int`, got `null`"),
        ({"colours": pa.array([["green"]])}, "Invalid enum value 'green'"),
        ({"colours": pa.array([[None]], pa.list_(pa.string()))}, "got `null`"),
    ],
    ids=["a null inside", "no member of an enum", "a null in a list"],
)
def test_what_is_no_value_of_its_type_is_reported(columns, message):
    with pytest.raises(InputError) as error:
        read(**columns)
    (name,) = columns
    (problem,) = error.value.problems
    assert problem.code == "bad-record"
    expected = f"column '{name}' of source 'in' has a row that does not fit "
    assert problem.message.startswith(expected)
    assert message in problem.message


INNER = Layout.of(Inner)


@given(st.lists(INNERS, max_size=4), st.data())
def test_records_are_taken_like_lists(values, data):
    places = data.draw(st.lists(st.integers(0, len(values) - 1)) if values else st.just([]))
    taken = Records.of(INNER, values).take(places)
    assert list(taken) == [values[place] for place in places]
    assert len(taken) == len(places)


@given(st.lists(st.lists(INNERS, max_size=3), min_size=1, max_size=3), st.data())
def test_batches_are_joined_and_halved_like_lists(parts, data):
    is_columns = [data.draw(st.booleans()) for _ in parts]
    given = [Records.of(INNER, p) if c else p for p, c in zip(parts, is_columns, strict=True)]
    values = [value for part in parts for value in part]
    assert list(joined_values(given)) == values
    batches = [EventBatch([], [b""] * len(part), part, label=1) for part in given]
    halves = joined(batches).halves()
    assert [value for half in halves for value in half.values] == values
    assert [half.label for half in halves] == [1, 1]


@given(st.lists(st.text(max_size=1)), st.booleans())
def test_a_column_is_its_values_by_their_numbers(texts, is_encoded):
    column = pa.array(texts, pa.string())
    found = numbering_of(column.dictionary_encode() if is_encoded else column)
    assert [found.values[number] for number in found.of] == texts
    assert sorted(found.values) == sorted(set(texts))


@given(st.lists(st.binary(max_size=1)))
def test_keys_are_numbered_as_they_come(keys):
    found, of = number_keys(keys)
    assert [found[number] for number in of.tolist()] == keys
    assert found == list(dict.fromkeys(keys))


def test_columns_hold_whatever_is_given():
    assert objects([(1, 2), [3], None]).tolist() == [(1, 2), [3], None]
    assert objects([]).dtype == np.dtype(object)


def test_fields_of_records_are_columns_or_nothing():
    records = Records.of(INNER, [Inner(1, "a"), Inner(2)])
    assert records.fields(["x"]) == [1, 2]
    assert records.fields(["x", "label"]) == [(1, "a"), (2, None)]
    assert records.fields(["y"]) is None
    assert records.fields([]) is None
