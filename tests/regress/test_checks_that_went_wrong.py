"""Checks of flows that ended in a traceback, accused the innocent, or let the guilty go."""

import enum
import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pytest
from support.flows import numbering_cache

import cutwater as cw
from cutwater.checking import always, check_model, sometimes
from cutwater.checking.purity.static_hints import hints_of
from cutwater.trace import read_trace, write_trace


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Car:
    colour: Colour
    wheels: int


def flow_of(kind, *steps):
    flow = cw.Flow("regress")
    stream = flow.source("s", kind)
    for verb, argument in steps:
        stream = getattr(stream, verb)(argument)
    flow.sink("out", stream)
    return flow


@cw.task(initial=None)
def last_car(state: Car | None, car: Car) -> tuple[Car | None, list[Car]]:
    return car, [car]


def test_enums_are_values():
    flow = flow_of(Car, ("apply", last_car))
    car = Car(Colour.RED, 4)
    assert cw.simulate(flow, {"s": [car, cw.CRASH]})["out"] == [car]
    assert cw.check(flow, samples=2).holds


@pytest.mark.parametrize("value", [float("nan"), Decimal("NaN")])
def test_nan_is_itself(value):
    assert cw.check(flow_of(int, ("map", lambda n: (n, value))), samples=1).holds


class Holder:
    """Compared by identity, and shown by its address."""

    def __init__(self, n):
        self.n = n


@cw.task(initial=0)
def holding(state: int, n: int) -> tuple[int, list[Holder]]:
    return state + n, [Holder(state + n)]


def test_objects_are_compared_by_what_they_hold():
    assert cw.check(flow_of(int, ("apply", holding)), samples=2).holds


@pytest.mark.parametrize("f", [numbering_cache.numbered, numbering_cache.cached])
def test_what_is_numbered_in_the_order_of_calls_is_not_pure(f):
    report = cw.check(flow_of(str, ("map", f)), {"s": ["a", "b", "c"]})
    assert [v.check for v in report.violations if v.check.startswith("purity")]


def test_what_stands_behind_a_wrapper_is_looked_at():
    assert hints_of(numbering_cache.cached)


@cw.task(initial=0)
def in_order(newest: int, n: int) -> tuple[int, list[int]]:
    if n < newest:
        raise ValueError(f"out of order: {n} after {newest}")
    return n, [n]


def test_a_step_that_fails_only_in_another_order_is_a_note():
    report = cw.check(flow_of(int, ("apply", in_order)), {"s": [1, 2]})
    assert report.holds
    assert "whether a step fails depends on the order within 's'" in str(report)


def test_a_flow_that_fails_on_its_own_input_is_the_users_to_mend():
    with pytest.raises(cw.RunError, match="out of order"):
        cw.check(flow_of(int, ("apply", in_order)), {"s": [2, 1]})


made = []


@cw.task(initial=0)
def picky(state: int, n: int) -> tuple[int, list[int]]:
    if n < 100:
        raise ValueError(n)
    made.append(n)
    return state + 1, [len(made)]


def test_shrinking_passes_over_values_on_which_the_flow_fails():
    report = cw.check(flow_of(int, ("apply", picky)), {"s": [100, 200]})
    assert "purity of 'picky'" in {finding.check for finding in report.violations}


def test_a_lone_exit_is_a_failure_of_the_step():
    with pytest.raises(cw.RunError, match="step-failed"):
        cw.simulate(flow_of(int, ("map", lambda n: sys.exit(3))), {"s": [1]})


@pytest.mark.parametrize("instances", [0, -1])
def test_no_instances_are_refused(instances):
    with pytest.raises(cw.InputError, match="too-small"):
        cw.simulate(flow_of(int), {"s": [1]}, trace=True, instances=instances)


@pytest.mark.parametrize("inputs", [[1, 2], None, {"s": 5}])
def test_inputs_that_are_none_are_a_sentence(inputs):
    with pytest.raises(cw.InputError, match="not-inputs"):
        cw.simulate(flow_of(int), inputs)


def test_no_trace_is_a_sentence():
    with pytest.raises(cw.InputError, match="no-trace"):
        cw.explain(cw.simulate(flow_of(int), {"s": [1]}).trace)


endless: list = []
endless.append(endless)


def test_what_cannot_be_kept_is_a_sentence_that_names_the_step():
    with pytest.raises(cw.InputError, match=r"\[not-a-value\] map 'function' .*contains itself"):
        cw.check(flow_of(int, ("map", lambda n: endless)), {"s": [1]})


@pytest.mark.parametrize("value", [{"a": (n for n in ())}, threading.Lock()])
def test_what_cannot_be_sent_is_said_though_the_flow_fails(value):
    report = cw.check(flow_of(int, ("map", lambda n: value)), {"s": [1]})
    travel, failed = report.violations
    assert "uses 'value" in travel.details[0]
    assert failed.check == "the flow runs"
    assert "not-a-value" in failed.details[0]


def test_a_state_that_cannot_be_copied_is_said_with_its_step():
    @cw.task(initial=b"")
    def view(state: bytes, n: int) -> tuple[bytes, list[int]]:
        return memoryview(b"x"), [n]

    with pytest.raises(cw.StepError, match=r"\[not-a-value\] apply 'view' .*cannot be copied"):
        cw.check(flow_of(int, ("apply", view)), {"s": [1, 2]})


def test_functions_and_arrays_can_be_kept():
    array = np.array([1, 2])
    flow = flow_of(int, ("map", lambda n: (len, lambda: 0, array)))
    assert cw.simulate(flow, {"s": [1, cw.CRASH]})["out"][0][0] is len


def test_explicit_watermarks_stay_where_they_are():
    items = [cw.Data(0, 1), cw.Watermark(1), cw.Data(2, 1)]
    report = cw.check(flow_of(int, ("map", lambda n: n)), {"s": items})
    assert "watermark" not in report.details()


# -- samples


@dataclass
class Endless:
    next: "Endless"


@dataclass(frozen=True)
class Counted:
    size: int
    twice: int = field(init=False)

    def __post_init__(self):
        if self.size > 2:
            raise KeyError(self.size)
        object.__setattr__(self, "twice", 2 * self.size)


class Nothing(enum.Enum):
    pass


@pytest.mark.parametrize("kind", [Endless, Nothing])
def test_a_type_without_a_value_is_a_sentence(kind):
    with pytest.raises(cw.InputError, match="no-sample"):
        cw.check(flow_of(kind))


def test_a_record_makes_its_own_fields_and_may_refuse_values():
    assert cw.check(flow_of(Counted), samples=2).holds


# -- traces


@pytest.fixture
def lines(tmp_path):
    flow = flow_of(int, ("map", lambda n: n))
    write_trace(cw.simulate(flow, {"s": [1, cw.CRASH]}).trace, tmp_path / "run.jsonl")
    return (tmp_path / "run.jsonl").read_text().splitlines()


HEADERS = [
    lambda h: h["tasks"][0].update(inputs=[]),
    lambda h: h["tasks"].append(h["tasks"][0]),
    lambda h: h["tasks"][0].update(output="s"),
    lambda h: h["tasks"][0].update(inputs=["s", "s"]),
    lambda h: h["tasks"][0].update(inputs=["s", h["tasks"][0]["output"]]),
    lambda h: h["sinks"].update(out=["elsewhere"]),
]


@pytest.mark.parametrize("damage", HEADERS)
def test_a_header_that_is_no_graph_is_refused(lines, tmp_path, damage):
    header = json.loads(lines[0])
    damage(header)
    path = tmp_path / "damaged.jsonl"
    path.write_text("\n".join([json.dumps(header), *lines[1:]]) + "\n")
    with pytest.raises(cw.InputError, match=r"\[damaged-trace\] line 1 of"):
        read_trace(path)


@pytest.mark.parametrize("other", ["true", "1.0"])
def test_values_that_python_calls_equal_are_not_the_same_message(lines, tmp_path, other):
    path = tmp_path / "edited.jsonl"
    edited = [lines[0], *(line.replace('"event":1}', f'"event":{other}}}') for line in lines[1:])]
    path.write_text("\n".join(edited) + "\n")
    assert not cw.explain(read_trace(path)).holds


# -- the model checker


class Counter:
    def initial_states(self):
        return [0]

    def actions(self, state):
        return ["up"] if state < 3 else []

    def step(self, state, action):
        return state + 1


def test_two_properties_of_one_name_are_refused():
    claims = [sometimes("a", lambda n: n == 1), always("a", lambda n: n < 3)]
    with pytest.raises(cw.InputError, match="duplicate-property"):
        check_model(Counter(), claims)


# -- Ctrl-C

INTERRUPTED = """
import os, signal
import cutwater as cw

calls = []

@cw.task(initial=0)
def total(state: int, n: int) -> tuple[int, list[int]]:
    calls.append(n)
    if len(calls) == {call} and "CUTWATER_CALLED_ELSEWHERE" not in os.environ:
        os.kill(os.getpid(), signal.SIGINT)
    return state + n, [state + n]

flow = cw.Flow("interrupted")
one, two = flow.source("one", int), flow.source("two", int)
flow.sink("out", one.merge(two).apply(total))
inputs = {{"one": [1, 2], "two": [3, 4]}}
"""

# a shell in the background starts its children deaf to Ctrl-C
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from cutwater.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(("call", "shown"), [(2, "the rest"), (40, "all runs"), (120, "all runs")])
def test_an_interrupted_check_shows_what_it_has_and_is_no_pass(tmp_path, call, shown):
    (tmp_path / "job.py").write_text(INTERRUPTED.format(call=call))
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "check", "job.py:flow"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stdout
    assert shown in done.stdout
