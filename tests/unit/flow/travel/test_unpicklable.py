"""What cannot be sent to another process is found, by step and variable."""

from __future__ import annotations

import sqlite3
import threading
from functools import partial
from pathlib import Path

import pytest

import cutwater as cw
from cutwater.flow.travel.unpicklable import unpicklable

_lock = threading.Lock()
_connections = {"main": None}
_sizes = {"a": 1}


class Pool:
    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.key = lambda value: value


_pool = Pool()


def locked(word: str) -> str:
    with _lock:
        return word


def indirectly(word: str) -> str:
    return locked(word)


def pooled(word: str) -> str:
    return str(_pool.connection) + word


def fine(word: str) -> int:
    return _sizes.get(word, len(word))


def problems(f):
    flow = cw.Flow("words")
    flow.sink("out", flow.source("words", str).map(f, name="step"))
    return [problem.message for problem in unpicklable(flow.steps)]


@pytest.mark.parametrize(
    ("f", "variable", "kind"),
    [
        (locked, "'_lock'", "lock"),
        (indirectly, "'locked._lock'", "lock"),
        (pooled, "'_pool.connection'", "Connection"),
        (partial(lambda lock, word: word, threading.Lock()), "'[0]'", "lock"),
        (lambda word, lock=_lock: word, "'a default'", "lock"),
    ],
)
def test_the_variable_is_named(f, variable, kind):
    (message,) = problems(f)
    assert "map 'step' (" in message
    assert variable in message
    assert kind in message


def test_a_closure_is_looked_into(tmp_path):
    with Path(tmp_path / "log").open("w") as log:
        (message,) = problems(lambda word: log.name + word)
    assert "'log', a _io.TextIOWrapper" in message


def test_the_state_to_begin_with_is_looked_at():
    @cw.task(initial=threading.Lock())
    def wait(state, word: str):
        return state, []

    flow = cw.Flow("words")
    flow.sink("out", flow.source("words", str).apply(wait))
    (problem,) = unpicklable(flow.steps)
    assert "apply 'wait'" in problem.message
    assert "'initial'" in problem.message


@pytest.mark.parametrize("f", [fine, len, str.lower, lambda word: Path(word), partial(max, 1)])
def test_what_can_travel_is_let_through(f):
    assert problems(f) == []


def test_check_finds_it():
    flow = cw.Flow("words")
    flow.sink("out", flow.source("words", str).map(locked))
    report = cw.check(flow, {"words": ["a"]}, walks=1, max_states=100)
    (found,) = report.violations
    assert found.check == "functions can be sent to an engine"
    assert "map 'locked' (" in found.details[0]
    assert "'_lock'" in found.details[0]
