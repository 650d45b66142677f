"""A recorded run, made once more with the functions of a flow."""

import random

import msgspec
import pytest

import cutwater as cw
from cutwater.checking.flows.reexecution import reexecute
from cutwater.checking.flows.runs import _walk
from cutwater.checking.flows.scenario import Scenario
from cutwater.errors import InputError
from cutwater.trace import Trace


def counting(by):
    @cw.task(initial=0)
    def count(seen: int, word: str) -> tuple[int, list[int]]:
        return seen + by, [seen + by]

    flow = cw.Flow("counts")
    words = flow.source("words", str).key_by(str.lower)
    flow.sink("out", words.apply(count))
    return flow


INPUTS = {"words": ["a", "b", cw.CRASH, "a", cw.BARRIER, "a"]}


def test_the_functions_that_were_run_do_what_the_run_says():
    run = cw.simulate(counting(1), INPUTS, trace=True).trace
    found = reexecute(run, counting(1))
    assert found.refusal is None
    assert found.calls == sum(step.rule == "event" for step in run.steps)


def test_other_functions_do_not():
    """Replayed as recorded the run is explained; only the functions tell that it is another's."""
    run = cw.simulate(counting(1), INPUTS, trace=True).trace
    assert cw.explain(run).holds
    found = reexecute(run, counting(2))
    assert run.steps[found.refusal.step].rule == "event"
    assert found.refusal.reason == "'count' produced 1; its function now gives 2"


def test_a_run_of_a_check_is_made_again_with_its_instances():
    given = Scenario(counting(1), {"words": ["a", "b", cw.BARRIER, "c"]}, None, 2)
    tasks = given.tasks()
    model = given.model(1, tasks)
    run = given.trace(tasks, model, list(_walk(model, random.Random(2))), "a run")
    assert reexecute(run, counting(1)).refusal is None


def test_a_step_that_a_trace_made_up_is_refused():
    run = cw.simulate(counting(1), INPUTS, trace=True).trace
    at = next(i for i, step in enumerate(run.steps) if step.produced and step.rule == "event")
    message = msgspec.structs.replace(run.steps[at].produced[0], event=99)
    step = msgspec.structs.replace(run.steps[at], produced=(message,))
    forged = Trace(run.header, (*run.steps[:at], step, *run.steps[at + 1 :]))
    assert reexecute(forged, counting(1)).refusal.step == at


def test_a_trace_of_another_flow_is_a_sentence():
    run = cw.simulate(counting(1), INPUTS, trace=True).trace
    other = cw.Flow("other")
    other.sink("out", other.source("words", str).map(str.upper))
    with pytest.raises(InputError) as raised:
        reexecute(run, other)
    assert raised.value.problems[0].code == "another-flow"


def test_values_that_a_trace_shows_only_as_text_come_from_the_inputs():
    @cw.task(initial=0)
    def total(seen: int, pair: tuple[int, int]) -> tuple[int, list[int]]:
        return seen + sum(pair), [seen + sum(pair)]

    flow = cw.Flow("pairs")
    flow.sink("out", flow.source("pairs", tuple[int, int]).apply(total))
    inputs = {"pairs": [(1, 2), (3, 4)]}
    run = cw.simulate(flow, inputs, trace=True).trace
    assert reexecute(run, flow, inputs).refusal is None
    with pytest.raises(InputError) as raised:
        reexecute(run, flow)
    assert raised.value.problems[0].code == "unknown-value"
