"""The list of mutants fits the code."""

import sys

import pytest
from support.repo.package import ROOT

sys.path.insert(0, str(ROOT / "tests" / "mutants"))
import run

MUTANTS = run.read()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.path}: {m.new}")
def test_what_a_mutant_changes_stands_once_in_its_module(mutant):
    assert (ROOT / mutant.path).read_text().count(mutant.old) == 1
    assert mutant.old != mutant.new
    assert mutant.tests
    assert all((ROOT / test.partition("::")[0]).is_file() for test in mutant.tests)


def test_no_mutant_is_there_twice():
    assert len({(m.path, m.old, m.new) for m in MUTANTS}) == len(MUTANTS)


@pytest.fixture
def sums(tmp_path):
    """A repository with one module and its test; a function that makes a mutant of it."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    (tmp_path / "test_sums.py").write_text(
        "from sums import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    )
    return lambda new: run.Mutant("src/sums.py", "return a + b", new, ("test_sums.py",))


@pytest.mark.parametrize(
    ("new", "word"), [("return a - b", "killed"), ("return b + a", "SURVIVED")]
)
def test_a_mutant_is_killed_if_a_test_fails_and_its_line_put_back(tmp_path, sums, new, word):
    assert run.verdict(sums(new), tmp_path) == word
    assert "return a + b" in (tmp_path / "src" / "sums.py").read_text()


def test_a_mutant_that_loops_for_ever_is_called_so(tmp_path, sums):
    assert run.verdict(sums("while True: pass"), tmp_path, limit_s=3) == "timed out"


def test_a_run_that_was_cut_off_skips_what_it_killed(tmp_path, sums):
    run.Killed(tmp_path / "killed", tmp_path).add(sums("return a - b"))
    later = run.Killed(tmp_path / "killed", tmp_path)
    assert sums("return a - b") in later
    assert sums("return b + a") not in later


@pytest.mark.parametrize("changed", ["src/sums.py", "test_sums.py"])
def test_a_mutant_is_tried_again_if_its_module_or_its_tests_changed(tmp_path, sums, changed):
    killed = run.Killed(tmp_path / "killed", tmp_path)
    killed.add(sums("return a - b"))
    with (tmp_path / changed).open("a") as file:
        file.write("\n")
    assert sums("return a - b") not in run.Killed(tmp_path / "killed", tmp_path)


def test_what_is_edited_while_mutants_run_is_tried_again(tmp_path, sums):
    killed = run.Killed(tmp_path / "killed", tmp_path)
    assert sums("return a - b") not in killed
    with (tmp_path / "test_sums.py").open("a") as file:
        file.write("\n")
    killed.add(sums("return a - b"))  # by the tests as they were
    assert sums("return a - b") not in run.Killed(tmp_path / "killed", tmp_path)
