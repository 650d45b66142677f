"""A function that cannot be interrupted ends a command, with a sentence that names it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys

import pytest

from cutwater.cli.overseer import most_memory, overseen

FLOWS = """
import itertools, os, resource, signal, time
import cutwater as cw

def computes(word):
    return sum(itertools.repeat(1))

def catches(word):
    while True:
        try:
            time.sleep(1)
        except BaseException:
            pass

def ends(word):
    os._exit(7)

def is_killed(word):
    os.kill(os.getpid(), signal.SIGKILL)

def bounds(word):
    return resource.getrlimit(resource.RLIMIT_DATA)[0]

def grows(word):
    return len(list(itertools.count()))

def tells(word):
    open("begun", "w").close()
    while True:
        pass

def of(f):
    flow = cw.Flow(f.__name__)
    flow.sink("out", flow.source("words", str).map(f))
    return flow

inputs = {"words": ["ab"]}
computing, catching, ending = of(computes), of(catches), of(ends)
telling = of(tells)
killed, bounded, growing, fine = of(is_killed), of(bounds), of(grows), of(str.upper)

def observe(shown):
    while True:
        pass

def observe_in_c(shown):
    return sum(itertools.repeat(1))
"""

IMPATIENT = """
import sys
import cutwater.semantics.hanging as hanging
hanging.WATCH_TICK_S, hanging.PATIENCE = 0.05, 4
from cutwater.cli import main
main()
"""
PATIENT = "from cutwater.cli import main; main()"


def cutwater(folder, *arguments, script=IMPATIENT, **settings):
    (folder / "flows.py").write_text(FLOWS)
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        **settings,
    )


SAID = {
    "computing": "computes (flows.py:6) has not returned after 0.2 s",
    "catching": "map 'catches' (flows.py:",
}


@pytest.mark.parametrize("command", ["check", "simulate"])
@pytest.mark.parametrize("flow", SAID)
def test_a_function_that_cannot_be_interrupted_is_named(flow, command, tmp_path):
    given = ["--inputs", "flows:inputs"] if command == "simulate" else []
    done = cutwater(tmp_path, command, f"flows.py:{flow}", *given)
    assert done.returncode == 2
    assert "error: [hanging-function]" in done.stderr
    assert SAID[flow] in done.stderr


def test_an_observer_that_does_not_return_is_named(tmp_path):
    done = cutwater(tmp_path, "check", "flows.py:fine", "--observe", "flows:observe")
    assert done.returncode == 1
    assert "[hanging-function] observe (flows.py:" in done.stdout
    done = cutwater(tmp_path, "check", "flows.py:fine", "--observe", "flows:observe_in_c")
    assert done.returncode == 2
    assert "[hanging-function] observe_in_c (flows.py:" in done.stderr


def test_a_function_that_collects_without_end_is_named(tmp_path):
    small = (1 << 30, 1 << 30)
    done = cutwater(
        tmp_path,
        "simulate",
        "flows.py:growing",
        "--inputs",
        "flows:inputs",
        script=PATIENT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, small),
    )
    assert done.returncode == 2
    assert "map 'grows' (flows.py:" in done.stderr
    assert "MemoryError" in done.stderr


def test_memory_is_bounded_by_half_of_what_there_is(tmp_path):
    given = ("simulate", "flows.py:bounded", "--inputs", "flows:inputs")
    assert str(most_memory()) in cutwater(tmp_path, *given).stdout
    lower = 1 << 31
    done = cutwater(
        tmp_path,
        *given,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (lower, lower)),
    )
    assert str(min(lower, most_memory())) in done.stdout


def test_what_is_asked_of_the_command_is_passed_on(tmp_path):
    """As by ``kill -INT``: what is found so far is shown; SIGTERM ends it."""
    (tmp_path / "flows.py").write_text(FLOWS)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)):
        running = subprocess.Popen(
            [sys.executable, "-c", PATIENT, "check", "flows.py:telling"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdout=subprocess.PIPE,
            text=True,
        )
        (tmp_path / "begun").unlink(missing_ok=True)
        while not (tmp_path / "begun").exists():
            assert running.poll() is None
        running.send_signal(number)
        shown, _ = running.communicate()
        assert running.returncode == code
        assert ("interrupted" in shown) == (number == signal.SIGINT)


def test_the_command_ends_as_its_process_does(tmp_path):
    assert cutwater(tmp_path, "check", "flows.py:ending").returncode == 7
    assert cutwater(tmp_path, "check", "flows.py:killed").returncode == -signal.SIGKILL
    assert cutwater(tmp_path, "check", "flows.py:fine").returncode == 0
    assert cutwater(tmp_path, "check", "flows.py:none").returncode == 2


def test_a_system_without_senders_of_signals_runs_the_command_here(monkeypatch):
    monkeypatch.delattr(signal, "sigwaitinfo")
    ran = []
    overseen(lambda: ran.append(os.getpid()))
    assert ran == [os.getpid()]
