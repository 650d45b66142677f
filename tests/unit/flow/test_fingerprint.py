"""Fingerprints of functions: what they do counts, how it is written does not."""

import subprocess
import sys
from functools import partial

import pytest

from cutwater.flow.fingerprint import fingerprint


def of_field(name, given=1):
    def key(item, default=given):
        return getattr(item, name)

    return key


def lowered(item):
    """Documentation."""
    return [part for part in item if part in {"a", "b"}]


def lowered_again(thing):
    # a comment

    return [piece for piece in thing if piece in {"a", "b"}]


def raised(item):
    return [part for part in item if part in {"a", "c"}]


class Scaled:
    """Can be called, and has something with it."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, item):
        return item * self.factor

    def by(self, item):
        return item * self.factor


class Shifted(Scaled):
    def __call__(self, item):
        return item + self.factor


def keyword_of(value):
    def key(item, *, given=value):
        return given

    return key


def test_other_words_for_the_same():
    assert fingerprint(lowered) == fingerprint(lowered_again)
    assert fingerprint(lambda x: x.name) == fingerprint(lambda y: y.name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lowered, raised),
        (lambda x: x.name, lambda x: x.size),
        (of_field("name"), of_field("size")),
        (of_field("name"), of_field("name", 2)),
        (of_field(lowered), of_field(raised)),
        (str.lower, str.upper),
        (partial(of_field, "name"), partial(of_field, "size")),
        (partial(lowered), partial(raised)),
        (partial(of_field, given=1), partial(of_field, given=2)),
        (Scaled(1), Scaled(2)),
        (Scaled(1), Shifted(1)),
        (Scaled(1).by, Scaled(2).by),
        (keyword_of(1), keyword_of(2)),
    ],
)
def test_functions_that_differ(one, other):
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)


def test_a_function_that_has_itself_with_it():
    def down(n):
        return n and down(n - 1)

    loop = Scaled(1)
    loop.again = loop.by
    assert fingerprint(down) == fingerprint(down)
    assert fingerprint(loop) == fingerprint(loop)


def test_what_can_change_does_not_count():
    assert fingerprint(of_field([])) == fingerprint(of_field(["x"]))  # it may change, so it is left


def test_another_process_finds_the_same():
    """Sets of texts have another order there."""
    code = (
        "from cutwater.flow.fingerprint import fingerprint\n"
        "def f(x):\n    return x in {'a', 'b', 'c', 'd'}\n"
        "print(fingerprint(f))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(found) == 1
