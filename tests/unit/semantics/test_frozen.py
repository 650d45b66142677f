"""Values of any type as values that can be hashed, compared and kept."""

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from decimal import Decimal

import pytest

from cutwater.events import Data
from cutwater.operators.log import Log
from cutwater.semantics.frozen import Frozen, hashable_form


@dataclass
class Open:
    items: list[int] = field(default_factory=list)


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


class Plain:
    def __init__(self, held):
        self.held = held


ALIKE = [
    lambda: [1, [2]],
    lambda: {"a": [1], "b": {2}},
    lambda: Open([1]),
    lambda: Slotted([1]),
    lambda: Plain({"x": 1}),
    lambda: Counter("aab"),
    lambda: deque([1, 2]),
    lambda: Log([[1], [2]]),
    lambda: Data(1, [2]),
    lambda: math.nan,
    lambda: (Decimal("1.5"), b"x", None),
    lambda: bytearray(b"ab"),
]


@pytest.mark.parametrize("make", ALIKE)
def test_equal_values_are_equal_and_hash_alike(make):
    one, two = Frozen(make()), Frozen(make())
    assert one == two
    assert hash(one) == hash(two)


def test_different_values_differ():
    values = [make() for make in ALIKE]
    values += [1, True, 1.0, "1", b"1", (1,), [1], {1}, {1: 1}, 0.0, -0.0, Counter("ab"), Open([2])]
    values += [Slotted([2]), Plain({"x": 2}), deque([1]), Log([[1]]), bytearray(b"ac")]
    frozen = {Frozen(value) for value in values}
    assert len(frozen) == len(values)


def test_dicts_and_sets_are_compared_without_order():
    assert hashable_form({"a": 1, "b": 2}) == hashable_form({"b": 2, "a": 1})
    assert hashable_form({1, 2}) == hashable_form({2, 1})


@pytest.mark.parametrize("make", [lambda: [1, [2]], lambda: Open([1]), lambda: Counter("a")])
def test_what_is_given_out_can_be_changed_without_changing_what_is_kept(make):
    frozen = Frozen(make())
    given = frozen.thaw()
    if isinstance(given, Open):
        given.items.append(9)
    else:
        given.clear()
    assert frozen == Frozen(make())
    assert Frozen(frozen.thaw()) == Frozen(make())


def test_a_view_of_a_longer_log_is_what_it_shows():
    log = Log([[1]])
    log.append([2])
    assert Frozen(log) == Frozen(Log([[1]]))
