"""What a user reads when a vectorised task does not keep its rule."""

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest
from support.repo.package import SOURCE
from support.repo.pinned import assert_pinned, without_places

import cutwater as cw
from cutwater.errors import CutwaterError
from cutwater.vectors import Keys, run_batch

MISTAKES = {}


@dataclass(frozen=True)
class Reading:
    sensor: str
    value: float
    number: int = 0


@dataclass(frozen=True)
class Total:
    count: int
    sum: float


class Checked(msgspec.Struct):
    value: int

    def __post_init__(self):
        pass


NOTHING = Total(0, 0.0)
READINGS = [Reading("a", 1.0), Reading("b", 5.0), Reading("a", 2.0)]


def mistake_for(name):
    def register(vector):
        MISTAKES[name] = vector
        return vector

    return register


def batch(vector, readings=READINGS, initial=NOTHING):
    """A call with three events of two keys."""
    task = cw.vectorised(initial=initial, name="mean")(vector)
    states = task.layouts.state.of_values([initial] * 2)
    events = task.layouts.event.of_values(readings, "'mean': ")
    return run_batch(task, states, events, Keys(np.array([0, 1, 0]), 2), task.layouts)


def returns(result):
    """A function of readings that returns something, annotated to be right."""

    def mean(state: Total, event: Reading, keys: cw.Keys) -> tuple[Total, cw.Emit[Reading]]:
        return result(state, event, keys) if callable(result) else result

    return mean


def result_for(name):
    def register(result):
        MISTAKES[name] = lambda: batch(returns(result))
        return result

    return register


@result_for("vector-result: nothing")
def _(state, event, keys):
    return None


@result_for("vector-result: too many")
def _(state, event, keys):
    return state, None, None, None


@result_for("vector-type: no record")
def _(state, event, keys):
    return state.count, None


@result_for("vector-type: no state")
def _(state, event, keys):
    return None, None


@result_for("vector-type: another record")
def _(state, event, keys):
    return state, state


@result_for("vector-type: a list of records")
def _(state, event, keys):
    return state, [event]


@result_for("vector-type: floats for whole numbers")
def _(state, event, keys):
    return Total(state.count / 2, state.sum), None


@result_for("vector-type: numbers for text")
def _(state, event, keys):
    return state, Reading(event.value, event.value, event.number)


@result_for("vector-type: no array")
def _(state, event, keys):
    return Total({1, 2}, state.sum), None


@result_for("vector-value: nothing for a number")
def _(state, event, keys):
    return Total(np.array([1, None]), state.sum), None


@result_for("vector-length: events for keys")
def _(state, event, keys):
    return Total(keys.running_count(), state.sum), None


@result_for("vector-length: keys for events")
def _(state, event, keys):
    return state, Reading(event.sensor, state.sum, 0)


@result_for("vector-length: fewer outputs than rows")
def _(state, event, keys):
    return state, cw.Emit([0, 1], Reading("a", event.value[:1], 0))


@result_for("vector-length: a table")
def _(state, event, keys):
    return Total(state.count, np.zeros((2, 2))), None


@result_for("vector-length: a sum of too few")
def _(state, event, keys):
    return Total(state.count, keys.sum(event.value[:2])), None


@result_for("vector-rows: out of range")
def _(state, event, keys):
    return state, cw.Emit([0, 3], event)


@result_for("vector-rows: not ascending")
def _(state, event, keys):
    return state, cw.Emit([1, 0, 2], event)


@result_for("vector-rows: a mask of keys")
def _(state, event, keys):
    return state, cw.Emit(state.count == 0, event)


@result_for("vector-rows: floats")
def _(state, event, keys):
    return state, cw.Emit(event.value, event)


@result_for("vector-gone: numbers")
def _(state, event, keys):
    return state, None, state.count


@result_for("vector-gone: of events")
def _(state, event, keys):
    return state, None, event.value > 1


@result_for("vector-changed")
def _(state, event, keys):
    state.count[keys.of] += 1
    return state, None


@mistake_for("vector-type: no annotation")
def _():
    batch(lambda state, event, keys: (state, event[0]))


@mistake_for("vector-value: nothing in a field")
def _():
    batch(returns(None), [Reading("a", None)])


@mistake_for("vector-value: too large")
def _():
    batch(returns(None), [Reading("a", 1.0, 2**70)])


@mistake_for("vector-value: another type")
def _():
    batch(returns(None), ["a"])


def applied(vector, initial, tp):
    flow = cw.Flow("mean")
    task = cw.vectorised(initial=initial, name="mean")(vector)
    flow.sink("means", flow.source("readings", tp).apply(task))
    flow.validate()


@mistake_for("vector-value: an initial state that is none")
def _():
    applied(returns(None), Total(0.5, 0.0), Reading)


@mistake_for("vector-record: in a flow")
def _():
    def same(state: int, event: Checked, keys: cw.Keys) -> tuple[int, Checked]:
        return state, event

    applied(same, 0, Checked)


@mistake_for("event-type: in a flow")
def _():
    applied(returns(None), Total(0, 0.0), int)


def problems(name):
    with pytest.raises(CutwaterError) as raised:
        MISTAKES[name]()
    return raised.value.problems


@pytest.mark.parametrize("name", MISTAKES)
def test_the_mistake_has_the_problem_it_is_named_after(name):
    assert re.match("[a-z-]+", name)[0] in {problem.code for problem in problems(name)}


def test_every_code_has_a_mistake():
    modules = (SOURCE / "cutwater" / "vectors").glob("*.py")
    codes = set(re.findall(r'Problem\(\s*"([a-z-]+)"', "".join(m.read_text() for m in modules)))
    assert len(codes) > 5
    assert codes - {"no-numpy"} <= {p.code for name in MISTAKES for p in problems(name)}


def test_what_the_user_reads():
    text = ""
    for name in sorted(MISTAKES):
        listed = "\n".join(map(str, problems(name)))
        text += f"--- {name}\n{without_places(listed)}\n\n"
    assert_pinned(Path(__file__).with_name("vector_problems.txt"), text)
