"""Inputs made up from the types of sources."""

import dataclasses
import datetime as dt
import enum
import random
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import msgspec
import pytest

import cutwater as cw
from cutwater.annotations import fits
from cutwater.checking.flows.samples import sample_inputs, sample_value


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Inner:
    size: int
    tags: list[str]


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner
    colour: Colour
    maybe: float | None
    at: int


class Packed(msgspec.Struct):
    key: str
    at: dt.datetime


class Pair(NamedTuple):
    left: int
    right: str


@dataclasses.dataclass(frozen=True)
class Picky:
    size: int

    def __post_init__(self):
        if self.size != 3:
            raise ValueError(self.size)


class Opaque:
    pass


@pytest.mark.parametrize(
    "tp",
    [
        *(int, str, bool, float, bytes, Decimal, dt.datetime, dt.date, dt.timedelta, None, Any),
        *(int | str, list[int], tuple[int, str], tuple[int, ...], dict[str, int], set[int]),
        *(Literal["a", "b"], Colour, Outer, Packed, Pair, Picky, list, dict),
    ],
)
def test_a_value_is_of_its_type(tp):
    tp = type(None) if tp is None else tp
    for seed in range(20):
        value = sample_value(tp, random.Random(seed))
        assert fits(type(value), tp)


def test_a_type_of_which_nothing_is_known_is_a_sentence_that_names_the_source():
    flow = cw.Flow("opaque")
    flow.source("things", Opaque).sink("out")
    with pytest.raises(cw.InputError, match=r"source 'things' .* no Opaque can be generated"):
        sample_inputs(flow)


def test_inputs_are_the_same_for_the_same_seed_and_times_go_up():
    flow = cw.Flow("two")
    flow.source("outer", Outer, time="at").sink("a")
    flow.source("packed", Packed, time="at").sink("b")
    one, again, other = (sample_inputs(flow, seed, epochs=3, size=4) for seed in (1, 1, 2))
    assert one == again != other
    for items in one.values():
        times = [item.at for item in items if item is not cw.BARRIER]
        assert times == sorted(times)
        assert items.count(cw.BARRIER) == 2
