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


@pytest.mark.parametrize(("new", "is_noticed"), [("return a - b", True), ("return b + a", False)])
def test_a_mutant_is_killed_if_a_test_fails_and_its_line_put_back(tmp_path, new, is_noticed):
    (tmp_path / "src").mkdir()
    module = tmp_path / "src" / "sums.py"
    module.write_text("def add(a, b):\n    return a + b\n")
    test = tmp_path / "test_sums.py"
    test.write_text("from sums import add\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    mutant = run.Mutant("src/sums.py", "return a + b", new, ("test_sums.py",))
    assert run.is_killed(mutant, tmp_path) == is_noticed
    assert "return a + b" in module.read_text()
