import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.errors import (
    CutwaterError,
    FlowError,
    InputError,
    Problem,
    RunError,
    TargetError,
    embed,
    extract,
)

KINDS = [CutwaterError, FlowError, InputError, TargetError, RunError]
PROBLEMS = st.lists(st.builds(Problem, st.text(), st.text(), st.text()), min_size=1, max_size=3)


def errors():
    return st.builds(lambda kind, problems: kind(problems), st.sampled_from(KINDS), PROBLEMS)


def same(a, b):
    return type(a) is type(b) and a.problems == b.problems and str(a) == str(b)


def test_the_text_is_all_problems_with_their_hints():
    error = FlowError([Problem("a", "one", "do this"), Problem("b", "two")])
    assert str(error) == "[a] one\n  hint: do this\n[b] two"


def test_a_single_problem_need_not_be_in_a_list():
    assert InputError(Problem("a", "one")).problems == (Problem("a", "one"),)


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_is_a_cutwater_error(kind):
    assert issubclass(kind, CutwaterError)


@given(errors())
def test_pickling_round_trip(error):
    assert same(pickle.loads(pickle.dumps(error)), error)


@given(errors(), st.text(), st.text())
def test_recover_finds_what_embed_hid_in_any_text(error, before, after):
    assert same(extract(before + embed(error) + after), error)


@given(errors())
def test_an_embedded_error_is_one_line_of_ascii_without_quotes(error):
    text = embed(error)
    assert text.isascii()
    assert text.isprintable()
    assert not set(text) & set("\"'\\ ")


@given(errors(), errors())
def test_recover_finds_the_first_of_two(first, second):
    assert same(extract(f"{embed(first)} caused {embed(second)}"), first)


@given(errors())
def test_an_error_whose_message_quotes_an_embedded_error_is_found_whole(inner):
    outer = RunError(Problem("outer", f"failed: {embed(inner)}"))
    assert same(extract(embed(outer)), outer)


@given(st.text())
def test_text_without_an_error_has_none(text):
    assert extract(text) is None


@given(errors(), st.data())
def test_what_was_cut_off_is_no_error(error, data):
    text = embed(error)
    end = data.draw(st.integers(0, len(text) - 1))
    assert extract(text[:end]) is None


@pytest.mark.parametrize(
    "lookalike",
    [
        "<<cutwater:",
        "<<cutwater:zz:cutwater>>",
        "<<cutwater:7b7d:cutwater>>",
        "<<cutwater::cutwater>>",
    ],
)
def test_a_lookalike_is_passed_over(lookalike):
    error = InputError(Problem("a", "one"))
    assert extract(lookalike) is None
    assert same(extract(lookalike + " " + embed(error)), error)


def test_an_error_of_an_unknown_kind_comes_back_as_a_cutwater_error():
    class Special(RunError):
        pass

    assert type(extract(embed(Special(Problem("a", "one"))))) is CutwaterError


def test_every_class_survives_being_embedded():
    kinds, found = [CutwaterError], []
    while kinds:
        kind = kinds.pop()
        found.append(kind)
        kinds += [
            below for below in kind.__subclasses__() if below.__module__ == CutwaterError.__module__
        ]
    assert len(found) == 11
    for kind in found:
        assert type(extract(embed(kind(Problem("a", "one"))))) is kind
