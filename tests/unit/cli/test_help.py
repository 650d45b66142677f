"""The screens of the command line, character by character."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.repo.pinned import assert_pinned

import cutwater

SNAPSHOTS = Path(__file__).parent.parent.parent / "snapshots" / "cli"


RUN = ["run", "a:b", "--source", "a=b", "--sink", "c=d", "--checkpoint", "e"]


def run(*arguments):
    """The real program, as in a terminal of 80 columns."""
    env = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "TERMINAL_WIDTH"):
        env.pop(name, None)
    program = Path(sys.executable).parent / "cutwater"
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=env)


def tidy(text):
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "verb",
    [
        "",
        "init",
        "simulate",
        "check",
        "guarantee",
        "run",
        "explain",
        "graph",
        "checkpoint",
        "checkpoint show",
        "checkpoint verify",
        "state",
        "frontier",
        "checkpoint rescale",
    ],
)
def test_help(verb):
    done = run(*verb.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert_pinned(SNAPSHOTS / f"{'-'.join(['help', *verb.split()])}.txt", tidy(done.stdout))
    assert run(*verb.split(), "-h").stdout == done.stdout


def test_no_command_shows_the_help():
    done = run()
    assert done.returncode == 2
    assert tidy(done.stdout + done.stderr).strip() == (SNAPSHOTS / "help.txt").read_text().strip()


def test_version():
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"cutwater {cutwater.__version__}\n",
        "",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such command"),
        (["simulate"], "Missing argument"),
        (["run"], "Missing argument"),
        (["simulate", "job.py:flow", "--nonsense"], "No such option"),
        (["simulate", "job.py:flow", "--epoch-size", "x"], "Invalid value"),
        ([*RUN, "--max-bytes-per-epoch", "0"], "Invalid value"),
        ([*RUN, "--partitions", "x"], "Invalid value"),
        (["checkpoint", "nonsense"], "No such command"),
        (["checkpoint", "rescale", "state"], "Missing option"),
    ],
)
def test_wrong_use_is_exit_code_2_and_no_traceback(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
