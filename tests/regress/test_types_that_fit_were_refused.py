"""Validation crashed on protocols and refused methods, type variables, literals and tuples."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import pytest

import cutwater as cw

T = TypeVar("T")


@dataclass(frozen=True)
class Reading:
    name: str


class HasName(Protocol):
    name: str


class Pairs:
    def both(self, left: Reading, right: str) -> str:
        return left.name + right


def name_of(value: HasName) -> str:
    return value.name


def same(value: T) -> T:
    return value


def side(value: Any) -> Literal["left", "right"]:
    return "left"


def two(value: Any) -> tuple[int, int]:
    return 1, 2


def total(values: tuple[int, ...]) -> int:
    return sum(values)


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.map(name_of),
        lambda s: s.map(same).key_by("name"),
        lambda s: s.map(side).map(str.upper),
        lambda s: s.map(two).map(total),
        lambda s: s.join(s.map(name_of), Pairs().both),
    ],
)
def test_types_that_fit_were_refused(build):
    flow = cw.Flow("types")
    flow.sink("out", build(flow.source("a", Reading)))
    flow.validate()
