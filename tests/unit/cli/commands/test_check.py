"""``cutwater check`` and ``cutwater explain``: what is shown, and how they end."""

import json
import re
from pathlib import Path

import pytest
from support.repo.pinned import assert_pinned

import cutwater as cw

SNAPSHOTS = Path(__file__).parents[3] / "snapshots" / "cli"

IMPURE = """
import cutwater as cw

calls = []

@cw.task(initial=0)
def counts(state: int, event: int) -> tuple[int, list[int]]:
    if event == 0:
        calls.clear()
    calls.append(event)
    return state + 1, [len(calls)]

flow = cw.Flow("counts")
flow.sink("out", flow.source("numbers", int).apply(counts))
inputs = {"numbers": [0, cw.BARRIER, 7]}
"""

CRASHING = """
more = {"items": [Item("a", 1), cw.BARRIER, Item("a", 2), cw.CRASH]}
"""


def test_a_flow_that_holds_is_shown_in_a_line_for_each_finding(cli, write):
    write()
    done = cli("check", "job.py:flow")
    assert done.code == 0
    assert_pinned(SNAPSHOTS / "check-holds.txt", done.out)


def test_a_counterexample_is_shown_and_is_exit_code_1(cli, write):
    write(IMPURE)
    done = cli("check", "job.py:flow")
    assert done.code == 1
    shown = re.sub(r"\[\d+\] instead of \[\d+\]", "[N] instead of [M]", done.out)
    assert_pinned(SNAPSHOTS / "check-violated.txt", shown)


def test_witnesses_are_shown_if_asked_for(cli, write):
    write(IMPURE)
    brief, verbose = cli("check", "job.py:flow"), cli("check", "job.py:flow", "--verbose")
    assert verbose.code == 1
    findings = verbose.out.count("✗")
    assert brief.out.count("✗") == findings == 3
    assert verbose.out.count("    gave  (") == 2
    assert "    gave  (" not in brief.out


def test_a_counterexample_is_written_as_a_trace_and_as_a_page(cli, write, tmp_path):
    write(IMPURE)
    done = cli("check", "job.py:flow", "--trace", "run.jsonl", "--html", "run.html")
    assert done.code == 1
    assert not cw.explain(cw.read_trace(tmp_path / "run.jsonl")).holds
    assert (tmp_path / "run.html").read_text().startswith("<!doctype html>")
    assert cli("explain", "run.jsonl").code == 1


def test_json_is_one_document(cli, write):
    write()
    data = json.loads(cli("check", "job.py:flow", "--json").out)
    assert data["holds"] is True
    assert data["findings"][0]["verdict"] == "holds"


def test_inputs_are_made_up_on_request(cli, write):
    write()
    done = cli("check", "job.py:flow", "--samples", "3", "--seed", "1", "--json")
    assert (done.code, json.loads(done.out)["seed"]) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["job.py:flow", "--inputs", "job.py:inputs", "--samples", "2"], "inputs-and-samples"),
        (["job.py:flow", "--crashes", "-1"], "too-small"),
        (["job.py:flow", "--inputs", "job.py:number"], "not-inputs"),
        (["job.py:number"], "not-a-flow"),
    ],
)
def test_wrong_use_is_a_sentence(cli, write, arguments, code):
    write()
    done = cli("check", *arguments)
    assert (done.code, done.out) == (2, "")
    assert f"error: [{code}]" in done.err


@pytest.fixture
def trace(cli, write):
    path = write()
    path.write_text(path.read_text() + CRASHING)
    done = cli("simulate", "job.py:flow", "--inputs", "job.py:more", "--trace", "run.jsonl")
    assert done.code == 0
    return path.parent / "run.jsonl"


def test_a_simulated_run_is_explained(cli, trace):
    done = cli("explain", trace)
    assert done.code == 0
    assert done.out.splitlines()[-2:] == [
        "explained: an observer cannot tell this run from one without failures",
        "replayed as it was recorded; with --flow the functions are called again",
    ]


def test_with_the_flow_its_functions_are_called_again(cli, trace):
    done = cli("explain", trace, "--flow", "job.py:flow", "--inputs", "job.py:more")
    assert done.code == 0
    assert re.fullmatch(
        r"re-executed: the functions of the flow were called again, \d+ calls",
        done.out.splitlines()[-1],
    )


def test_a_run_that_the_functions_do_not_make_is_exit_code_1(cli, trace):
    """The trace says so of itself; only the functions tell."""
    lines = trace.read_text().splitlines()
    step = next(i for i, line in enumerate(lines) if '"state"' in line and i)
    data = json.loads(lines[step])
    data["state"] = "forged"
    lines[step] = json.dumps(data)
    (trace.parent / "forged.jsonl").write_text("\n".join(lines) + "\n")
    done = cli(
        "explain", trace.parent / "forged.jsonl", "--flow", "job.py:flow",
        "--inputs", "job.py:more", "--json",
    )  # fmt: skip
    assert done.code == 1
    assert "its function now gives" in json.loads(done.out)["refusal"]["reason"]


def test_an_explanation_is_a_page_and_data(cli, trace):
    done = cli("explain", trace, "--html", "run.html", "--json")
    data = json.loads(done.out)
    assert (done.code, data["explained"], len(data["generations"])) == (0, True, 2)
    assert "<script" in (trace.parent / "run.html").read_text()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: "", "line 1 of run.jsonl is empty"),
        (lambda text: text[:-20], "cut off before its end"),
        (lambda text: text.replace('"fail"', '"fall"'), "is not a step of a trace"),
    ],
)
def test_a_damaged_trace_is_a_sentence_that_names_the_line(cli, trace, damage, message):
    trace.write_text(damage(trace.read_text()))
    done = cli("explain", "run.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "[damaged-trace] line " in done.err
    assert message in done.err


def test_a_trace_that_is_not_there_is_a_sentence(cli, write):
    write()
    done = cli("explain", "gone.jsonl")
    assert done.code == 2
    assert "[unreadable-file] gone.jsonl cannot be read" in done.err


def test_a_page_that_cannot_be_written_is_a_sentence(cli, trace):
    done = cli("explain", trace, "--html", "/nowhere/run.html")
    assert done.code == 2
    assert "[unwritable-file]" in done.err
