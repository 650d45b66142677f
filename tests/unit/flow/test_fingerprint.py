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
    ],
)
def test_functions_that_differ(one, other):
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)


def test_what_is_no_function_is_known_by_its_kind():
    assert fingerprint(partial(str, 1)) == fingerprint(partial(str, 2))
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
