"""That a batch means the same as its events one by one is found out if it does not."""

import dataclasses

import pytest
from support.flows import vector_tasks as v

import cutwater as cw
from cutwater.checking.flows.batches import check_batches, witness_of
from cutwater.checking.flows.histories import histories_of
from cutwater.checking.flows.samples import sample_inputs
from cutwater.checking.flows.scenario import Scenario
from cutwater.errors import InputError

QUICK = {"crashes": 0, "walks": 0, "max_states": 50}


def named(tasks):
    return [pytest.param(task, id=task.name) for task in tasks]


def batches_of(report):
    return [f for f in report.findings if f.check.startswith("batches")]


def findings(flow, readings=None):
    """What is found of a flow on given readings, or on ones that are made up."""
    inputs = [{"readings": readings}] if readings else [sample_inputs(flow, n) for n in range(5)]
    given = [Scenario(flow, one, None, 2) for one in inputs]
    histories = histories_of(given, 0, is_made_up=not readings)
    return list(check_batches(flow, histories, 0))


@pytest.mark.parametrize("task", named(v.RIGHT))
def test_what_is_right_is_not_accused(task):
    (finding,) = findings(v.flow_of(task))
    assert finding.verdict == "not refuted", finding.details


@pytest.mark.parametrize("task", named(v.WRONG))
def test_what_is_wrong_is_found(task):
    (finding,) = findings(v.flow_of(task))
    assert (finding.check, finding.verdict) == (f"batches of '{task.name}'", "violated")
    assert finding.details[0].count(": Reading(") <= 3


@pytest.mark.parametrize("task", named(v.WRONG))
def test_a_few_given_events_suffice(task):
    readings = [v.Reading("ab"[n % 2], float(n)) for n in range(6)]
    (finding,) = findings(v.flow_of(task), readings)
    assert finding.verdict == "violated"


def test_it_is_part_of_a_check():
    report = cw.check(v.flow_of(v.running_mean), **QUICK)
    assert report.holds
    (finding,) = batches_of(report)
    assert finding.check == "batches mean the same as their events"
    report = cw.check(v.flow_of(v.keeps_the_first), **QUICK)
    (finding,) = batches_of(report)
    assert report.violations == (finding,)
    assert list(finding.details) in [f["details"] for f in report.as_data()["findings"]]


@pytest.mark.parametrize("task", named([v.changes_its_state, v.adds_to_its_state]))
def test_what_changes_its_arrays_is_stopped_at_once(task):
    with pytest.raises(InputError, match=f"'{task.name}' changes an array"):
        cw.check(v.flow_of(task), **QUICK)


def test_what_changes_objects_in_its_arrays_is_impure():
    @cw.vectorised(initial=[])
    def appends(seen: list, event: v.Reading, keys: cw.Keys) -> tuple[list, None]:
        for now in range(len(keys)):
            seen[keys.of[now]].append(event.value[now])
        return seen, None

    report = cw.check(v.flow_of(appends), **QUICK)
    assert "it changes its state in place" in str(report.violations)


def test_sums_in_another_order_are_found():
    readings = [v.Reading("a", 0.1), v.Reading("a", 0.2), v.Reading("a", 0.3)]
    (finding,) = findings(v.flow_of(v.adds_in_pairs), readings)
    assert "one by one it keeps key 1: 0.6000000000000001" in finding.details[0]
    assert "in batches it keeps key 1: 0.6" in finding.details[0]


def test_one_state_for_all_needs_no_keys():
    @cw.vectorised(initial=0.0)
    def sums(total: float, event: v.Reading, keys: cw.Keys) -> tuple[float, float]:
        added = keys.running_sum(event.value, start=total)
        return added[-1:], added

    assert findings(v.flow_of(sums, is_keyed=False))[0].verdict == "not refuted"
    assert findings(v.flow_of(sums))[0].verdict == "violated"


def test_a_state_that_expires_begins_anew():
    (finding,) = findings(v.flow_of(v.running_mean, expire_after=1))
    assert finding.verdict == "not refuted"


def test_a_flow_without_vectorised_tasks_has_no_such_finding():
    assert not batches_of(cw.check(v.flow_of(v.running_mean_of_each), **QUICK))


def test_the_witness_is_small_though_the_input_is_large():
    readings = [v.Reading("abcdefghijklm"[n % 13], float(n)) for n in range(400)]
    (finding,) = findings(v.flow_of(v.keeps_the_first), readings)
    assert finding.details[0].count(": Reading(") == 2


def test_what_needs_more_events_of_a_key_than_are_looked_at_closely():
    @cw.vectorised(initial=0)
    def caps(count: int, event: v.Reading, keys: cw.Keys) -> tuple[int, None]:
        return count + keys.count().clip(max=20), None

    readings = [v.Reading("a", 1.0)] * 50
    (finding,) = findings(v.flow_of(caps), readings)
    assert finding.details[0].count(": Reading(") == 21


def test_a_witness_is_seen_as_it_was_split():
    step = next(s for s in v.flow_of(v.starts_anew).steps if s.verb == "apply")
    history = [(7, v.Reading("a", 1.0)), (7, v.Reading("a", 2.0))]
    witness, _ = witness_of(step, [history], 0, tries=5)
    step = dataclasses.replace(step, name="again")
    assert str(dataclasses.replace(witness, step=step)).splitlines()[1:] == [
        "  batch 1",
        "    key 1: Reading(sensor='a', value=1.0)",
        "    key 1: Reading(sensor='a', value=2.0)",
        "  one by one it emits [1.0], [2.0]",
        "  in batches it emits [1.0], [3.0]",
    ]


def test_events_that_fail_one_by_one_are_no_witness():
    """The function fails wherever they come: nothing is reported about how they are split."""

    @cw.vectorised(initial=0)
    def wants_two(seen: int, event: v.Reading, keys: cw.Keys) -> tuple[int, None]:
        if len(keys) < 2:
            raise ValueError("fewer than two")
        return seen, None

    (step,) = (s for s in v.flow_of(wants_two).steps if hasattr(s, "task"))
    history = [(0, v.Reading("a", 1.0)), (0, v.Reading("a", 2.0)), (1, v.Reading("b", 3.0))]
    found, compared = witness_of(step, [history], 0, tries=5)
    assert found is None
    assert compared
