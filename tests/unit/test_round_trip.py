"""What a quick look takes for exact comes back from the codec as it was."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutwater.codec import codec_of
from cutwater.round_trip import difference, exactness, first_misfit, round_trip, shared_part


@dataclass
class Inner:
    count: int | None
    tags: list[str]


@dataclass(frozen=True)
class Outer:
    price: float
    inner: tuple[Inner, ...]


SCALARS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=3), st.none(), st.booleans()
)
LISTS = st.lists(SCALARS, max_size=2)
INNER = st.builds(Inner, SCALARS, st.one_of(LISTS, LISTS.map(tuple)))
OUTER = st.builds(
    Outer, SCALARS, st.one_of(*[st.lists(INNER, max_size=2).map(f) for f in (tuple, list)])
)


@settings(max_examples=150)
@given(OUTER)
def test_exact_implies_that_the_round_trip_loses_nothing(value):
    back, loss = round_trip(value, codec_of(Outer))
    if exactness(Outer)(value):
        assert loss is None
        assert first_misfit(value, Outer) is None
    if loss is None:
        assert difference(value, back) is None


def test_what_is_not_exact_is_not_mistaken_for_it():
    right = Outer(1.0, (Inner(1, ["a"]),))
    assert exactness(Outer)(right)
    marked = Inner(1, ["a"])
    marked.seen = 1
    for wrong in (
        Outer(1, right.inner),
        Outer(1.0, list(right.inner)),
        Outer(1.0, (Inner(True, ["a"]),)),
        Outer(1.0, (Inner(2**64, ["a"]),)),
        Outer(1.0, (Inner(1, ["\ud800"]),)),
        Outer(1.0, (marked,)),
    ):
        assert not exactness(Outer)(wrong)
        assert round_trip(wrong, codec_of(Outer))[1] is not None


def test_a_place_is_named_by_the_fields_that_lead_there():
    value = Outer(1.0, (Inner(1, []), Inner("many", [])))
    assert first_misfit(value, Outer).path == "inner[1].count"
    assert difference({"a": Counter("x")}, {"a": {"x": 1}}).path == "['a']"
    assert difference({1: 1}, {1: 1, 2: 2}) is not None
    assert difference(float("nan"), float("nan")) is None


@pytest.mark.parametrize(
    ("value", "path", "declared"),
    [
        (Outer(1.0, (Inner(1, ["a"]), Inner(True, ["a"]))), "inner[1].count", "int | None"),
        (Outer(np.float64(2), ()), "price", "float"),
    ],
)
def test_a_part_that_fits_but_is_not_taken_is_named_by_its_place(value, path, declared):
    _, loss = round_trip(value, codec_of(Outer))
    assert (loss.path, loss.reason) == (path, f"it is declared as {declared}")


def test_a_part_that_cannot_change_may_be_shared():
    tags = ["a"]
    assert shared_part(Outer(1.0, (Inner(1, tags), Inner(2, tags)))) == (
        "inner[0].tags",
        "inner[1].tags",
    )
    same = (1, "a")
    assert shared_part([same, same]) is None


@pytest.mark.parametrize("text", ["NaN", "sNaN", "NaN123", "-Infinity", "-0", "1.50"])
def test_a_decimal_comes_back_as_itself(text):
    assert round_trip(Decimal(text), codec_of(Decimal))[1] is None


def test_a_nan_is_no_key():
    """It is found by being that object, which it no longer is after a restart."""
    nan = float("nan")
    for value, tp in (({nan: 1}, dict[float, int]), ({nan}, set[float])):
        _, loss = round_trip(value, codec_of(tp))
        assert "a NaN does not equal itself" in str(loss)
    assert round_trip({1.5: nan}, codec_of(dict[float, float]))[1] is None
