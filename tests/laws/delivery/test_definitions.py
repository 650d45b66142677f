"""Definitions 5 to 8 of P2, word by word, on all runs of small random systems."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from support.checking.random_systems import seeds
from support.delivery.random_systems import INPUTS, drawn_system, sequences

from cutwater.checking.guarantees.classify import GUARANTEES, classify, each_alone, together
from cutwater.semantics.delivery.model import DeliveryModel, Recover
from cutwater.semantics.delivery.system import reference_recovery

few = settings(max_examples=20)  # every run of two models is enumerated for each


def drawn_model(seed):
    return DeliveryModel(drawn_system(random.Random(seed)), INPUTS, failures=1)


def followed(runs):
    """Each observation with the one that comes next."""
    return {pair for run in runs for pair in pairwise(run)}


def is_output(pair):
    return len(pair[1].outputs) > len(pair[0].outputs)


@pytest.mark.parametrize("flaw", GUARANTEES.values())
@few
@given(seeds)
def test_by_run_means_one_reference_run_explains_each_run(flaw, seed):
    model = drawn_model(seed)
    expected = sequences(model) <= sequences(model.reference(flaw))
    assert together(model, flaw).holds == expected


@pytest.mark.parametrize("flaw", GUARANTEES.values())
@few
@given(seeds)
def test_by_state_and_at_rest_mean_what_the_definitions_say(flaw, seed):
    model = drawn_model(seed)
    runs, references = sequences(model), sequences(model.reference(flaw))
    outputs = {pair for pair in followed(runs) if is_output(pair)}
    rests, theirs = (
        {run[-1] for run in found if run[-1].is_quiescent} for found in (runs, references)
    )
    by_state, at_rest = each_alone(model, flaw)
    assert by_state.holds == (outputs <= followed(references))
    assert at_rest.holds == (rests <= theirs)


@pytest.mark.parametrize("flaw", GUARANTEES.values())
@few
@given(seeds)
def test_what_holds_by_run_holds_by_state_and_at_rest(flaw, seed):
    """So `classify` need not look again."""
    model = drawn_model(seed)
    if together(model, flaw).holds:
        assert all(verdict.holds for verdict in each_alone(model, flaw))


@few
@given(seeds)
def test_exactly_once_is_at_most_and_at_least_once(seed):
    """So `classify` need not look again."""
    model = drawn_model(seed)
    if together(model, "none").holds:
        assert together(model, "loses").holds
        assert together(model, "repeats").holds


@few
@given(seeds)
def test_definition_3_the_reference_recovery_is_exactly_once(seed):
    model = drawn_model(seed).reference()
    assert sequences(model) == sequences(model.reference())
    for point in model.initial_states():
        (restored,) = [s.restored for s in model.actions(point) if isinstance(s, Recover)]
        c = point.configuration
        assert (restored,) == tuple(reference_recovery(c)(c.inputs, c.outputs))


@few
@given(seeds)
def test_a_witness_is_a_run_that_nothing_explains_and_cannot_be_shortened(seed):
    model = drawn_model(seed)
    found = classify(model.system, INPUTS)
    for guarantee, verdicts in found.verdicts.items():
        witness = verdicts.by_run.witness
        if witness is None:
            continue
        references = sequences(model.reference(GUARANTEES[guarantee]))
        assert seen(model, witness.actions) not in references
        assert seen(model, witness.actions[:-1]) in references
        for left_out in range(len(witness)):
            shorter = (*witness.actions[:left_out], *witness.actions[left_out + 1 :])
            assert seen(model, shorter) in {None, *references}


def seen(model, actions):
    """What is seen of a run without repetitions; None if it is not one."""
    (here,) = model.initial_states()
    observed = [model.observation(here)]
    for action in actions:
        if action not in model.actions(here):
            return None
        here = model.step(here, action)
        now = model.observation(here)
        observed += [] if now == observed[-1] else [now]
    return tuple(observed)


def test_the_random_systems_have_all_guarantees_and_none():
    """Otherwise the laws above would say little."""
    found = {str(classify(drawn_system(random.Random(seed)), INPUTS)) for seed in range(60)}
    assert found == {"exactly-once", "at-most-once", "at-least-once", "none"}
