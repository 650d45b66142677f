"""The report for a terminal."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from support.repo.pinned import assert_pinned
from support.report import toy_runs

from cutwater.checking import Explanation
from cutwater.report.text import render_text

PINNED = Path(__file__).parents[2] / "snapshots" / "report"


def resets() -> Explanation:
    run = toy_runs.averages(4).play(5, [(4, "average"), (16, "average")])
    run.fail("average")
    return run.explained()


@pytest.mark.parametrize(
    ("name", "explanation"),
    [
        ("word-count", toy_runs.shown_run()),
        ("averages", resets()),
        ("long", toy_runs.long_run(1500)),
        ("refused", toy_runs.impure_run()),
    ],
)
def test_the_text_is_the_pinned_one(name, explanation):
    assert_pinned(PINNED / f"{name}.txt", render_text(explanation))


def test_a_long_run_is_short():
    assert len(render_text(toy_runs.long_run(20_000)).splitlines()) < 350


def test_nothing_that_a_terminal_would_obey_is_in_it():
    explanation = toy_runs.shown_run()
    header = msgspec.structs.replace(explanation.trace.header, flow="a\x1b[2Jb\nc")
    trace = msgspec.structs.replace(explanation.trace, header=header)
    text = render_text(replace(explanation, trace=trace))
    assert text.startswith("a�[2Jb�c: 32 steps")


def test_a_run_without_steps_has_a_text():
    text = render_text(toy_runs.word_count().explained())
    assert text.startswith("word-count: 0 steps, 0 failures, 1 generation, 0 commits\n")
