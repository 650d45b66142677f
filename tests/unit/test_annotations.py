import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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

from cutwater.annotations import fields_of, fits, is_immutable, members, typename, union_of
from cutwater.errors import FlowError

T = TypeVar("T")
Metres = NewType("Metres", float)


@dataclass(frozen=True)
class Point:
    x: int
    y: float


@dataclass(frozen=True)
class Named:
    name: str
    x: int | None = None


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
    assert typename(tp) == text


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
