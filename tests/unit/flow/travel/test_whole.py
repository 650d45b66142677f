"""A flow is pickled as a run pickles it: what a run accepts is accepted, what it refuses is not."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap

import pytest

import cutwater as cw
from cutwater.errors import RefusedError
from cutwater.flow.travel.whole import dump_whole

_MODULE = """
import abc, collections, enum, functools, threading, typing, weakref
from dataclasses import dataclass
import msgspec

T = typing.TypeVar("T")
Other = collections.namedtuple("Other", "a b")
held = weakref.WeakValueDictionary()
lock = threading.Lock()

@dataclass(frozen=True)
class WithMethods:
    n: int = 1
    @classmethod
    def zero(cls): return cls()
    @staticmethod
    def one(): return 1
    @property
    def double(self): return self.n * 2
    @functools.cached_property
    def triple(self): return self.n * 3

class Pair(typing.NamedTuple):
    left: int
    right: int = 2

class Letter(enum.Enum):
    A = "a"
    @classmethod
    def of(cls, text): return cls(text)
    @property
    def upper(self): return self.value.upper()

class Base(abc.ABC):
    @abc.abstractmethod
    def size(self): ...

class Sized(Base):
    def size(self): return 1

class Shaped(typing.Protocol):
    n: int

class Box(typing.Generic[T]):
    @classmethod
    def of(cls, value): return value

@functools.lru_cache(maxsize=3)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)

class Totals(msgspec.Struct, frozen=True):
    n: int = 0

@functools.singledispatch
def size(value): return 1

connection = None

def opened():
    global connection
    connection = threading.Lock()

class Guarded:
    @classmethod
    def locked(cls, value):
        with lock: return value

class GuardedByProperty:
    @property
    def locked(self): return lock
"""


@pytest.fixture
def awkward(tmp_path, monkeypatch):
    (tmp_path / "awkward_classes.py").write_text(_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("awkward_classes")
    sys.modules.pop("awkward_classes")


def flow_over(module, expression: str) -> cw.Flow:
    """A flow whose only function computes the expression in the module."""
    exec(f"def stepped(event: str) -> object:\n    return {expression}", vars(module))
    flow = cw.Flow("classes")
    flow.sink("out", flow.source("in", str).map(module.stepped, name="step"))
    return flow


RIGHT = {
    "WithMethods.zero().double + WithMethods.one()": 3,
    "WithMethods().triple": 3,
    "tuple(Pair(1)._replace(left=5))": (5, 2),
    "Other(1, 2)._asdict()": {"a": 1, "b": 2},
    "Letter.of('a').upper": "A",
    "Sized().size()": 1,
    "Shaped.__name__": "Shaped",
    "Box.of(4)": 4,
    "fib(9)": 34,
}
"""Expressions over the module's classes, and what they are."""

_ELSEWHERE = """
import pickle, sys
flow = pickle.loads(sys.stdin.buffer.read())
assert "awkward_classes" not in sys.modules
print(flow.steps[1].f("a"))
"""


@pytest.mark.parametrize("expression", RIGHT)
def test_right_classes_travel_and_work_there(expression, awkward, tmp_path):
    flow = flow_over(awkward, expression)
    (tmp_path / "far").mkdir()
    there = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_ELSEWHERE)],
        input=dump_whole(flow, flow),
        capture_output=True,
        cwd=tmp_path / "far",
    )
    assert there.stderr.decode() == ""
    assert there.stdout.decode().strip() == str(RIGHT[expression])


@pytest.mark.parametrize("expression", RIGHT)
def test_check_accepts_them(expression, awkward):
    report = cw.check(flow_over(awkward, expression), {"in": ["a"]}, walks=1, max_states=50)
    assert [f for f in report.violations if "sent to an engine" in f.check] == []


WRONG = {
    "Totals().n": "Totals is a msgspec.Struct of module 'awkward_classes'",
    "size(event)": "uses 'size.dispatch.dispatch_cache', a weakref.WeakKeyDictionary",
    "len(held)": "uses 'held', a weakref.WeakValueDictionary",
    "Guarded.locked(event)": "uses 'Guarded.lock', a _thread.lock",
    "GuardedByProperty().locked is None": "uses 'GuardedByProperty.lock', a _thread.lock",
}
"""Expressions that use what cannot be sent, with the message for each."""


@pytest.mark.parametrize("expression", WRONG)
def test_what_a_run_refuses_is_named(expression, awkward):
    flow = flow_over(awkward, expression)
    with pytest.raises(RefusedError) as refused:
        dump_whole(flow, flow)
    (problem,) = refused.value.problems
    assert WRONG[expression] in problem.message


@pytest.mark.parametrize("expression", WRONG)
def test_check_finds_what_a_run_refuses(expression, awkward):
    report = cw.check(flow_over(awkward, expression), {"in": ["a"]}, walks=1, max_states=50)
    found = [f for f in report.violations if "sent to an engine" in f.check]
    assert WRONG[expression] in found[0].details[0]


def test_what_a_call_opens_is_not_sent(awkward):
    """A run sends the flow before a function was called; so does a check."""
    report = cw.check(flow_over(awkward, "opened()"), {"in": ["a"]}, walks=1, max_states=50)
    assert [f for f in report.violations if "sent to an engine" in f.check] == []
