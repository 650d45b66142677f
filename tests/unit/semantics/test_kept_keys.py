"""A key is stored by its declared type, so a function of `key_by` has to return that."""

from __future__ import annotations

import enum
from decimal import Decimal

import pytest

import cutwater as cw


class Kind(enum.Enum):
    WORD = "word"


@cw.task(initial=0)
def count(seen: int, word: str) -> tuple[int, list[int]]:
    return seen + 1, [seen + 1]


def initial(word: str) -> int:
    return word[:1]


def length(word: str) -> float:
    return len(word)


def kind(word):
    return Kind.WORD


def declared_kind(word: str) -> Kind:
    return Kind.WORD


def pair(word: str) -> tuple[str, int]:
    return word, len(word)


def price(word):
    return (Decimal(len(word)), 1 << 70)


def flow_of(key, follow=lambda stream: stream.apply(count)):
    flow = cw.Flow("keys")
    flow.sink("out", follow(flow.source("words", str).key_by(key)))
    return flow


WRONG = [
    (initial, "annotated to make keys of int and makes something else: it is 'a' (str)"),
    (length, "it is 1 (int), and comes back as 1.0 (float)"),
    (kind, "the key <Kind.WORD: 'word'> is a Kind, and its type is not declared"),
]


@pytest.mark.parametrize(("key", "said"), WRONG)
def test_a_key_that_a_checkpoint_does_not_restore_is_named_with_its_step(key, said):
    with pytest.raises(cw.CutwaterError) as raised:
        cw.simulate(flow_of(key), {"words": ["a"]})
    message = raised.value.problems[0].message
    assert message.startswith(f"key_by 'by_{key.__name__}' (")
    assert said in message
    report = cw.check(flow_of(key), {"words": ["a"]}, walks=1, max_states=50)
    (found,) = report.violations
    assert found.check == "states and events survive encoding"


@pytest.mark.parametrize("key", [declared_kind, pair, price, str.upper])
def test_a_key_that_is_as_declared_passes(key):
    assert cw.simulate(flow_of(key), {"words": ["a", "a"]})["out"] == [1, 2]


def test_a_key_by_which_nothing_is_kept_may_be_anything():
    flow = flow_of(kind, lambda stream: stream.map(str.upper))
    assert cw.simulate(flow, {"words": ["a"]})["out"] == ["A"]
