"""Records as columns, and back."""

import datetime as dt
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NewType

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.errors import FlowError, InputError
from cutwater.vectors import Layout

Sensor = NewType("Sensor", int)


@dataclass(frozen=True)
class Reading:
    sensor: str
    value: float
    number: int
    is_good: bool
    tags: list[str]
    note: str | None


@dataclass(frozen=True, slots=True)
class Slotted:
    at: int
    of: float


@dataclass
class Derived:
    value: int
    double: int = field(init=False)

    def __post_init__(self):
        if isinstance(self.value, np.ndarray):
            raise TypeError("an array")
        self.double = 2 * self.value


@dataclass(kw_only=True)
class ByKeyword:
    value: int


class Struct(msgspec.Struct, frozen=True):
    value: int
    name: str = ""


class Checked(msgspec.Struct):
    value: int

    def __post_init__(self):
        pass


class Pair(NamedTuple):
    left: int
    right: str


@dataclass(frozen=True)
class Nothing:
    pass


INT64 = st.integers(-(2**63), 2**63 - 1)
READINGS = st.builds(
    Reading,
    st.text(),
    st.floats(allow_nan=False),
    INT64,
    st.booleans(),
    st.lists(st.text()),
    st.none() | st.text(),
)
VALUES = {
    Reading: READINGS,
    Slotted: st.builds(Slotted, INT64, st.floats(allow_nan=False)),
    Derived: st.builds(Derived, INT64.filter(lambda n: abs(n) < 2**62)),
    ByKeyword: st.builds(ByKeyword, value=INT64),
    Struct: st.builds(Struct, INT64, st.text()),
    Pair: st.builds(Pair, INT64, st.text()),
    Nothing: st.just(Nothing()),
    int: INT64,
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    str: st.text(),
    tuple[int, ...]: st.tuples(st.integers(), st.integers()),
    int | None: st.none() | st.integers(),
    Slotted | Struct: st.builds(Slotted, INT64, st.just(1.0)) | st.builds(Struct, INT64),
    Any: st.none() | st.integers() | st.text(),
}


@pytest.mark.parametrize("tp", VALUES, ids=str)
@given(st.data())
def test_columns_hold_what_they_are_made_of(tp, data):
    values = data.draw(st.lists(VALUES[tp], max_size=5))
    layout = Layout.of(tp)
    columns = layout.of_values(values)
    assert columns.keys() == layout.columns.keys()
    record = layout.record(columns)
    again = layout.to_values(layout.split(record, len(values), "it"))
    assert again == values
    assert [type(value) for value in again] == [type(value) for value in values]


def test_kinds_of_columns():
    assert Layout.of(Reading).columns == {
        "sensor": "object",
        "value": "float",
        "number": "int",
        "is_good": "bool",
        "tags": "object",
        "note": "object",
    }
    assert Layout.of(Sensor).columns == {"": "int"}
    assert Layout.of(Literal[1, 2]).columns == {"": "int"}
    assert Layout.of(float | int).columns == {"": "object"}


def test_values_are_of_python():
    layout = Layout.of(Slotted)
    (value,) = layout.to_values({"at": np.array([1]), "of": np.array([0.5])})
    assert (type(value.at), type(value.of)) == (int, float)


def test_numpy_numbers_among_objects_become_those_of_python():
    given_ = np.array([np.float64(0.5), None, np.int64(3)], object)
    (column,) = Layout.of(Any).split(given_, 3, "it").values()
    assert [type(value) for value in column] == [float, type(None), int]


@pytest.mark.parametrize(
    ("tp", "array", "values"),
    [
        (float, np.array([1, 2]), [1.0, 2.0]),
        (float, np.array([True, False]), [1.0, 0.0]),
        (float, np.array([0.5, 1], np.float32), [0.5, 1.0]),
        (int, np.array([True, False]), [1, 0]),
        (int, np.array([1, 2], np.uint64), [1, 2]),
        (int, np.array([1, 2], object), [1, 2]),
        (int, [1, 2], [1, 2]),
        (int, 7, [7, 7]),
        (int, np.int64(7), [7, 7]),
        (int, np.array(7), [7, 7]),
        (str, np.array(["a", "b"]), ["a", "b"]),
        (str, "a", ["a", "a"]),
        (list[int], [[1], [2, 3]], [[1], [2, 3]]),
        (str | None, None, [None, None]),
        (dt.datetime, np.array([0, 1], "M8[ns]"), [dt.datetime(1970, 1, 1)] * 2),
    ],
)
def test_what_can_be_a_column_is(tp, array, values):
    layout = Layout.of(tp)
    found = layout.to_values(layout.split(array, 2, "it"))
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("tp", "array", "message"),
    [
        (int, np.array([1.0, 2.0]), "it has an array of float64; it is declared int"),
        (int, np.array(["1", "2"]), "it has an array of <U1; it is declared int"),
        (bool, np.array([1, 0]), "it has an array of int64; it is declared bool"),
        (str, np.array([1.0, 2.0]), "it has an array of float64; it is declared str"),
        (int, np.array([None, 1]), "it has None; it is declared int"),
        (
            int,
            np.array([2**64 - 1, 1], np.uint64),
            "it has 18446744073709551615; a column of int has 64 bits for each",
        ),
        (float, np.zeros(3), "it has 3 elements, not 2"),
        (float, np.zeros((2, 2)), "it has the shape (2, 2), not 2"),
        (float, {1.0, 2.0}, "it has a set where an array belongs"),
        (
            Slotted,
            np.zeros(2),
            "it is an array; by its annotations it is a Slotted of arrays",
        ),
        (Slotted, None, "it is None; by its annotations it is a Slotted of arrays"),
        (
            Slotted,
            Slotted(np.zeros(2), np.zeros(2)),
            "it has in 'at' an array of float64; it is declared int",
        ),
    ],
)
def test_what_cannot_is_reported(tp, array, message):
    with pytest.raises(InputError) as raised:
        Layout.of(tp).split(array, 2, "it")
    assert raised.value.problems[0].message == message


@pytest.mark.parametrize(
    ("tp", "value", "message"),
    [
        (int, 2**63, "a value is 9223372036854775808; a column of int has 64 bits for each"),
        (Slotted, Slotted(1, None), "Slotted.of is None; it is declared float"),
        (Slotted, Slotted("1", 1.0), "Slotted.at is '1'; it is declared int"),
        (Slotted, Slotted(1.0, 1.0), "Slotted.at is 1.0; it is declared int"),
        (
            Slotted,
            "x",
            "'x' is no Slotted; a vectorised task takes what its annotations say",
        ),
    ],
)
def test_values_that_do_not_fit_are_reported(tp, value, message):
    with pytest.raises(InputError) as raised:
        Layout.of(tp).of_values([value])
    assert raised.value.problems[0].message == message


def test_a_struct_that_checks_itself_is_refused():
    with pytest.raises(FlowError, match="Checked has __post_init__"):
        Layout.of(Checked)
