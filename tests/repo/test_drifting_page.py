"""The table in docs/drifting-state.md is what the benchmark computes, in virtual time."""

import importlib.util
import re
import sys

import pytest
from support.repo.package import ROOT


@pytest.fixture(scope="module")
def benchmark():
    file = ROOT / "benchmarks" / "drifting.py"
    spec = importlib.util.spec_from_file_location("drifting_benchmark", file)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


def shown():
    """The table of the page."""
    text = (ROOT / "docs" / "drifting-state.md").read_text()
    found = re.search(r"<!-- computed by .* -->\n((?:\|.*\n)+)", text)
    return found[1]


@pytest.mark.slow
def test_the_table_is_what_the_benchmark_computes(benchmark):
    assert shown() == benchmark.table(list(benchmark.rows()))


def test_one_row_of_it(benchmark):
    row = benchmark.measured((1, 2), 30, 10)
    line = benchmark.table([row]).splitlines()[-1]
    assert line in shown().splitlines()


def test_what_the_text_says_of_it():
    """The sentences below the table name these figures."""
    lines = {tuple(cell.strip() for cell in line.split("|")[1:4]): line
             for line in shown().splitlines()}  # fmt: skip
    assert "| 88.1 | 89.0 / 90.4 |" in lines["1 × 2", "30 %", "100"]
    assert "| 14.28 |" in lines["3 × 2", "30 %", "100"]
    assert "| 139 % / 30 % |" in lines["1 × 8", "30 %", "30"]
    assert "| 183 % / 30 % |" in lines["1 × 8", "30 %", "100"]
