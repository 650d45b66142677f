"""Schemas: which changes of a type what was kept survives, tried with the codec itself."""

import enum
import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, NamedTuple, NewType, TypedDict

import msgspec
import pytest

from cutwater.codec import Codec, Plain
from cutwater.schema import render, schema_of, what_breaks


@dataclass
class Point:
    x: int
    y: float = 0.0


@dataclass
class Tree:
    value: int
    children: list["Tree"] = field(default_factory=list)


@dataclass
class Either:
    side: Point | Tree


class Row(NamedTuple):
    x: int
    y: int = 0


class Struct(msgspec.Struct, tag="s"):
    x: int


class Array(msgspec.Struct, array_like=True):
    x: int


class Options(TypedDict, total=False):
    x: int


class Colour(enum.Enum):
    RED = "red"


TYPES = [
    int,
    str | None,
    dict[str, list[int]],
    tuple[int, ...],
    Counter[str],
    Point,
    Tree,
    Either,
    Row,
    Struct,
    Array,
    Options,
    Colour,
    Literal["a", 1],
    NewType("Name", str),
    Decimal,
    Plain,
]


@pytest.mark.parametrize("tp", TYPES, ids=str)
def test_a_schema_is_json_and_agrees_with_itself(tp):
    schema = schema_of(tp)
    assert json.loads(json.dumps(schema)) == schema
    assert list(what_breaks(schema, schema)) == []
    others = [schema_of(other) for other in TYPES if other is not tp]
    assert schema not in others
    assert render(schema)


@pytest.mark.parametrize(
    ("tp", "rendered"),
    [
        (Tree, "Tree(value: int, children: list[^1])"),
        (Either, "Either(side: Point(x: int, y: float) | Tree(value: int, children: list[^1]))"),
        (Colour, "one of['red']"),
        (NewType("Name", str), "str"),
    ],
)
def test_a_schema_is_rendered_in_words(tp, rendered):
    assert render(schema_of(tp)) == rendered


def longer(base, name, tp=int):
    """A class like another one, with one more field that has a default."""
    if issubclass(base, tuple):
        return NamedTuple(name, [*base.__annotations__.items(), (name, tp)])
    if issubclass(base, msgspec.Struct):
        config = base.__struct_config__
        fields = [("x", int), ("more", tp, 0)]
        return msgspec.defstruct(name, fields, tag=config.tag, array_like=config.array_like)
    return dataclass(
        type(name, (base,), {"__annotations__": {"more": tp}, "more": 0, "__module__": __name__})
    )


@pytest.mark.parametrize(
    ("before", "value", "survives"),
    [
        (Point, Point(1, 2.0), True),
        (Struct, Struct(1), True),
        (Either, Either(Point(1)), False),
        (Row, Row(1), False),
        (Array, Array(1), False),
    ],
)
def test_a_field_with_a_default_may_be_added_where_names_are_written(before, value, survives):
    now = longer(before, "more")
    assert (not list(what_breaks(schema_of(before), schema_of(now)))) == survives
    if survives:
        assert Codec(now).decode(Codec(before).encode(value)).more == 0


def test_a_field_may_be_added_to_what_holds_itself():
    before = schema_of(Tree)
    now = json.loads(json.dumps(before))
    now["fields"]["more"] = {"type": "int", "required": False}
    assert list(what_breaks(before, now)) == []
    assert list(what_breaks(now, before)) == ["field 'more' of it was removed"]


@pytest.mark.parametrize(
    "hold", [lambda tp: list[tp], lambda tp: dict[str, tp], lambda tp: tuple[int | Decimal, tp]]
)
def test_a_field_may_be_added_deep_inside(hold):
    before, now = hold(Point), hold(longer(Point, "more"))
    assert list(what_breaks(schema_of(before), schema_of(now))) == []
    assert len(list(what_breaks(schema_of(now), schema_of(before)))) == 1


def test_a_field_that_changes_how_all_is_written_is_refused():
    """With a union of dataclasses in it, a dataclass is written without names."""
    now = longer(Point, "more", Point | Tree)
    (why,) = what_breaks(schema_of(Point), schema_of(now))
    assert why.startswith("it was Point(x: int, y: float) and is more(")
