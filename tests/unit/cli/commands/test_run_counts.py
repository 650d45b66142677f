"""The last lines of a run say of which runs their counts are: of this one, or of all."""

from pathlib import Path

import pytest

from cutwater.cli.commands import run
from cutwater.spark import RunResult


def finished(**changes) -> RunResult:
    given = {
        "flow": "totals",
        "generation": 3,
        "epochs": 2,
        "next_epoch": 9,
        "rows": {"sums": 1_204},
        "bad_records": {"items": 4, "others": 0},
        "late": {"items": 5},
        "guarantees": {},
    }
    return RunResult(**{**given, **changes})


@pytest.mark.parametrize(("mode", "unit"), [("microbatch", "epochs"), ("realtime", "ticks")])
def test_every_count_says_of_which_run_it_is(mode, unit, capsys):
    run._show(finished(mode=mode), Path("state"))
    shown = capsys.readouterr().out
    first, header, counted, *side_outputs = shown.splitlines()
    assert first == f"totals: 2 {unit} in run 3 of this checkpoint"
    assert header.split(maxsplit=1) == ["sink", "rows of all runs"]
    assert counted.split() == ["sums", "1,204"]
    assert side_outputs == [
        "bad records of 'items' in all runs: 4, kept in state/bad-records/items",
        "late events of 'items' in all runs: 5, kept in state/late-events/items",
    ]


def test_a_run_that_was_stopped_says_so(capsys):
    run._show(finished(is_stopped=True), Path("state"))
    assert "stopped, as requested; the next run continues" in capsys.readouterr().out
