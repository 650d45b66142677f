"""The pytest plugin: a counterexample is the text of the failure."""

import subprocess
import sys
import textwrap

import pytest
from support.flows import impure_tasks as tasks

import cutwater as cw
from cutwater.testing import assert_transparent


def applied(task):
    flow = cw.Flow("applied")
    flow.sink("out", flow.source("numbers", int).apply(task))
    return flow


def test_a_transparent_flow_passes_and_says_how_far_was_looked():
    report = assert_transparent(applied(tasks.pure), crashes=1)
    assert report.holds
    assert "explored all" in report.findings[0].extent


def test_the_failure_shows_the_shrunk_counterexample():
    with pytest.raises(AssertionError) as caught:
        assert_transparent(applied(tasks.counts_calls), {"numbers": [1, 2, 3]}, seed=7)
    text = str(caught.value)
    assert "purity of 'counts_calls'" in text
    assert "# or any other value" in text
    assert text.endswith("to reproduce it: seed=7")


SUITE = """
    import cutwater as cw
    from cutwater.testing import assert_transparent

    calls = []

    @cw.task(initial=0)
    def counts(state: int, event: int) -> tuple[int, list[int]]:
        calls.append(event)
        return state + 1, [len(calls)]

    def flow_of(task):
        flow = cw.Flow("counts")
        flow.sink("out", flow.source("numbers", int).apply(task))
        return flow

    def test_transparent():
        assert_transparent(flow_of(counts))
"""


def test_pytest_finds_the_plugin_and_shows_the_counterexample_alone(tmp_path):
    (tmp_path / "test_it.py").write_text(textwrap.dedent(SUITE))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--cutwater-seed", "3", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "purity of 'counts'" in done.stdout
    assert "to reproduce it: seed=3" in done.stdout
    assert "flows.py" not in done.stdout  # no frames of ours
