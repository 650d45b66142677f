"""Crashes written into the inputs of a simulation."""

import pytest

import cutwater as cw
from cutwater.semantics.inputs import split


@cw.task(initial=0)
def total(state: int, event: int) -> tuple[int, list[int]]:
    return state + event, [state + event]


def summing():
    flow = cw.Flow("sums")
    flow.sink("out", flow.source("numbers", int).map(abs).apply(total))
    return flow


def rules(simulation):
    return [step.rule for step in simulation.trace.steps]


@cw.task(initial=None)
def passing(state: None, event: int) -> tuple[None, list[int]]:
    return None, [event]


def copying():
    flow = cw.Flow("copies")
    flow.sink("out", flow.source("numbers", int).apply(passing))
    return flow


@pytest.mark.parametrize(("epoch_size", "again"), [(None, 3), (1, 0)])
def test_a_crash_replays_what_was_not_snapshot(epoch_size, again):
    # bytewax's recovery tests: source 0, 1, 2, CRASH, 3, 4; with no snapshot all of it is done
    # again, with one per item only what comes after
    inputs = {"numbers": [0, 1, 2, cw.CRASH, 3, 4]}
    result = cw.simulate(copying(), inputs, epoch_size=epoch_size)
    assert result["out"] == [0, 1, 2, 3, 4]
    done = [step.consumed[0].event for step in result.trace.steps if step.rule == "event"]
    numbers = [event for event in done if isinstance(event, int)]
    assert len(numbers) == 5 + again


def test_a_crash_happens_once():
    result = cw.simulate(summing(), {"numbers": [1, cw.CRASH, 2]})
    assert rules(result).count("recover") == 1
    assert result["out"] == [1, 3]


def test_a_crash_of_everything_fails_every_task():
    result = cw.simulate(summing(), {"numbers": [1, cw.CRASH]}, instances=1)
    failed = [step.task for step in result.trace.steps if step.rule == "fail"]
    assert failed == [task.name for task in result.trace.header.tasks]


def test_the_crash_of_a_step_fails_its_task_alone():
    result = cw.simulate(summing(), {"numbers": [1, cw.crash("total")]})
    failed = [step.task for step in result.trace.steps if step.rule == "fail"]
    assert failed == ["total"]


def test_a_keyed_step_crashes_in_all_its_instances():
    flow = cw.Flow("keyed")
    flow.sink("out", flow.source("numbers", int).key_by(lambda n: n % 2).apply(total))
    result = cw.simulate(flow, {"numbers": [1, 2, cw.crash("total")]}, instances=2)
    failed = [step.task for step in result.trace.steps if step.rule == "fail"]
    assert failed == ["total/0", "total/1"]
    assert sorted(result["out"]) == [1, 2]


def test_a_crash_behind_the_last_barrier_comes_at_the_end_of_the_input():
    result = cw.simulate(summing(), {"numbers": [1, cw.BARRIER, cw.CRASH]})
    recovery = rules(result).index("recover")
    assert result.trace.steps[recovery].epoch == 1


def test_an_unknown_step_is_a_sentence_with_those_that_run():
    with pytest.raises(cw.InputError, match="unknown-step") as caught:
        cw.simulate(summing(), {"numbers": [cw.crash("totals")]})
    assert "total" in caught.value.problems[0].hint


def test_without_crashes_a_trace_is_there_only_if_asked_for():
    inputs = {"numbers": [1, 2]}
    assert cw.simulate(summing(), inputs).trace is None
    traced = cw.simulate(summing(), inputs, trace=True)
    assert set(rules(traced)) == {"event", "barrier"}
    assert traced["out"] == [1, 3]


def test_crashes_keep_their_place_when_inputs_are_cut():
    plain, crashes = split({"a": [1, cw.CRASH, 2, 3, cw.CRASH]}, 2)
    assert plain == {"a": [1, 2, 3]}
    assert crashes == {"a": [(0, 1, cw.CRASH), (1, 1, cw.CRASH)]}


def test_a_source_that_feeds_a_sink_alone_can_crash_too():
    flow = cw.Flow("copy")
    flow.source("here", int).sink("there")
    assert cw.simulate(flow, {"here": [1, cw.CRASH, 2]})["there"] == [1, 2]


def test_a_crash_is_shown_as_it_is_written():
    assert repr([cw.CRASH, cw.crash("total"), cw.BARRIER]) == "[CRASH, crash('total'), BARRIER]"


def test_a_step_may_have_the_name_of_a_source():
    flow = cw.Flow("named")
    flow.sink("out", flow.source("n", int).key_by(lambda n: n).apply(total, name="n"))
    result = cw.simulate(flow, {"n": [1, 2, cw.crash("n")]}, instances=2)
    assert sorted(result["out"]) == [1, 2]
    assert [task.name for task in result.trace.header.tasks] == ["apply n/0", "apply n/1"]


def test_a_watermark_that_every_instance_passes_on_is_shown_once():
    flow = cw.Flow("keyed")
    flow.sink("out", flow.source("numbers", int).key_by(abs).apply(total))
    inputs = {"numbers": [1, 2, 3, cw.CRASH, cw.BARRIER, 4]}
    result = cw.simulate(flow, inputs, instances=3)
    assert list(result.events["out"]) == list(cw.simulate(flow, inputs, instances=1).events["out"])
    assert [sum(isinstance(e, cw.Watermark) for e in epoch) for epoch in result.events["out"]] == [
        1,
        1,
        0,
    ]
