"""Records that are read have all their fields, so that what is written has them too."""

from dataclasses import dataclass, field
from typing import Generic, Optional, TypeVar

import msgspec
import pytest

from cutwater.spark.connectors.base.defaults import filler_of


@dataclass(frozen=True)
class Inner:
    size: int = 1
    note: str | None = None


@dataclass(frozen=True)
class Outer:
    name: str
    rank: int = 3
    inner: Inner = Inner()
    more: list[Inner] = field(default_factory=list)
    last: str = "z"


@dataclass
class Tree:
    value: int = 0
    left: Optional["Tree"] = None


T = TypeVar("T")


@dataclass
class Described(Generic[T]):
    text: str = "none"


@dataclass(frozen=True, slots=True)
class Slotted:
    a: int
    b: int = 2


@dataclass
class Full:
    a: int


def read(tp, text):
    value = msgspec.json.decode(text, type=tp)
    fill = filler_of(tp)
    if fill is not None:
        fill(value)
    return value


@pytest.mark.parametrize(
    ("tp", "text", "expected"),
    [
        (Outer, b'{"name": "a"}', Outer("a")),
        (Outer, b'{"last": "y", "name": "a", "rank": 4}', Outer("a", 4, last="y")),
        (Outer, b'{"name": "a", "inner": {"size": 2}}', Outer("a", inner=Inner(2))),
        (
            Outer,
            b'{"name": "a", "more": [{}, {"note": "n"}]}',
            Outer("a", more=[Inner(), Inner(1, "n")]),
        ),
        (list[Inner], b"[{}]", [Inner()]),
        (dict[str, Inner], b'{"k": {}}', {"k": Inner()}),
        (Inner | None, b"{}", Inner()),
        (Inner | None, b"null", None),
        (Tree, b'{"left": {"left": {}}}', Tree(0, Tree(0, Tree()))),
        (Slotted, b'{"a": 1}', Slotted(1)),
    ],
)
def test_what_is_written_again_is_what_the_whole_record_writes(tp, text, expected):
    value = read(tp, text)
    assert value == expected
    assert msgspec.json.encode(value) == msgspec.json.encode(expected)


@pytest.mark.parametrize("tp", [int, Full, list[int], Slotted, dict[str, Full], str | None])
def test_where_nothing_can_be_missing_nothing_is_done(tp):
    assert filler_of(tp) is None
