"""Each definition must reject something, and each sense of it something the others accept."""

import pytest
from support.delivery.scripts import INPUT, plan, scripted, shows

from cutwater.checking.guarantees.classify import GUARANTEES, Reference, classify, each_alone
from cutwater.checking.guarantees.recoverability import any_fitting
from cutwater.semantics.delivery.epochs import flink_epochs
from cutwater.semantics.delivery.histories import letters
from cutwater.semantics.delivery.model import DeliveryModel, Output, Seen
from cutwater.semantics.delivery.published import all_idempotent, released_at_once
from cutwater.semantics.delivery.system import EMPTY, Element, System, bag


def senses(found, guarantee="exactly-once"):
    """By state, at rest, by run."""
    verdicts = found.verdicts[guarantee]
    return verdicts.by_state.holds, verdicts.at_rest.holds, verdicts.by_run.holds


def test_definition_5_rejects_an_output_that_no_reference_run_shows_next():
    model = DeliveryModel(scripted("xy"), INPUT)
    reference = Reference(model)
    x, y = Element("out", "x"), Element("out", "y")
    assert reference.is_consistent(Seen(1, EMPTY, 0, False), bag(x))
    assert not reference.is_consistent(Seen(1, EMPTY, 0, False), bag(y))
    assert reference.is_consistent(Seen(1, bag(x), 0, False), bag(x, y))
    assert not reference.is_consistent(Seen(1, bag(x), 0, False), bag(x, x))
    assert not reference.is_consistent(Seen(0, EMPTY, 0, False), bag(x))  # nothing entered yet


def test_definition_6_rejects_an_output_that_is_shown_twice():
    found = classify(scripted("xy", recover=shows("xy")), INPUT)
    assert senses(found) == (False, False, False)
    assert str(found) == "none"


def test_definition_6_as_printed_accepts_a_system_that_falls_silent():
    found = classify(scripted("xy", recover=shows("")), INPUT)
    assert senses(found) == (True, False, False)


def test_each_output_alone_is_consistent_and_the_sequence_is_not():
    """Reference runs xyz and yxw must not accept xyw."""
    system = any_fitting(scripted("xyz", "yxw"), INPUT)
    found = classify(system, INPUT)
    assert senses(found) == (True, True, False)
    assert "exactly-once" not in found.guarantees
    last = found.verdicts["exactly-once"].by_run.witness.actions[-1]
    assert last in (Output(Element("out", "w")), Output(Element("out", "z")))


def test_a_run_must_also_end_where_the_run_that_explains_it_ends():
    """xy begins as xyz does and shows in the end what yx does; no one run does both."""
    found = classify(any_fitting(scripted("xyz", "yx"), INPUT), INPUT)
    assert senses(found) == (True, True, False)
    assert str(found.verdicts["exactly-once"].by_run).endswith("nothing is left to do")


def test_definition_7_rejects_what_was_shown_of_an_input_that_is_lost_afterwards():
    """An input counts with all that is derived from it, or not at all."""
    silent = classify(scripted("x", recover=shows("")), INPUT)
    assert senses(silent, "at-most-once") == (True, True, True)
    assert str(silent) == "at-most-once"
    half = classify(scripted("xy", recover=shows("")), INPUT)
    assert senses(half, "at-most-once") == (True, False, False)


def test_definition_8_rejects_what_no_repeated_input_shows():
    again = classify(all_idempotent("appending sink"), letters("ab"))
    assert str(again) == "at-least-once"
    assert senses(again, "at-most-once") == (False, False, False)
    lost = classify(all_idempotent("no replay"), letters("ab"))
    assert str(lost) == "at-most-once"
    assert senses(lost, "at-least-once") == (True, False, False)


def test_an_input_counts_at_most_once_more_than_there_were_failures():
    """A replay that brings an input three times is not explained by one failure."""
    system = all_idempotent("appending sink")
    thrice = System(
        "thrice", "", system.transforms, system.leaving, lambda a, b: (a + a,), system.shown
    )
    assert str(classify(thrice, letters("a"))) == "none"


def test_outputs_that_are_shown_again_are_not_at_least_once_where_there_is_state():
    """A repeated input changes the state: after `a` it shows `aa`, never `a` again."""
    assert str(classify(flink_epochs("release before the commit"), letters("a"))) == "none"


def test_at_most_and_at_least_once_may_both_hold_where_exactly_once_does_not():
    """Two copies of the input undo each other, which looks as if it had been lost."""
    once, x = INPUT[0], Element("out", "x")

    def transforms(working, outputs):
        if working.count(once) == 2:
            return [(bag(once, once), EMPTY)]
        return [(bag(once), bag(x))] if once in working else []

    system = System("undoing", "", transforms, lambda w, b: w.of_kind("out"), lambda a, b: (EMPTY,))
    found = classify(system, INPUT)
    assert found.guarantees == {"at-most-once", "at-least-once"}
    assert str(found) == "at-most-once and at-least-once"


def test_the_same_seed_finds_the_same_witness():
    def found(seed):
        system = released_at_once("replay and release again")
        verdicts = classify(system, letters("ab"), search="random", walks=30, seed=seed).verdicts
        return {g: verdicts[g].by_run.witness for g in GUARANTEES}

    assert found(1) == found(1)
    assert found(1)["exactly-once"] is not None


def test_a_bound_is_reported_and_refutes_nothing():
    system = flink_epochs("replay from an older offset")
    found = classify(system, letters("ab"), max_states=5)
    verdicts = found.verdicts["exactly-once"]
    assert (verdicts.hold, verdicts.is_settled, found.is_settled) == (True, False, False)
    assert str(verdicts.by_state) == "not refuted: the search was not exhaustive"
    assert classify(system, letters("a")).is_settled


@pytest.mark.parametrize("bound", range(5, 140, 15))
def test_a_search_that_was_cut_refutes_no_guarantee_that_holds(bound):
    """What of the reference was not looked at is not missing from it."""
    model = DeliveryModel(flink_epochs(), letters("ab"))
    for verdict in each_alone(model, "none", max_states=bound, search="depth"):
        assert (verdict.holds, verdict.is_exhaustive) == (True, False)


def test_the_reference_may_show_in_between_what_the_system_never_does():
    """The system shows y, then x; the reference without `a` x, then y: at rest all is well."""
    a, b = letters("ab")

    def transforms(working, outputs):
        if a in working and b in working:
            return [(bag(a, b), plan("n"))]
        alone = [(bag(b), plan("xy"))] if b in working else []
        return [*alone, *scripted().transforms(working, outputs)]

    def recover(inputs, outputs):
        return [plan("yx")] if inputs == bag(a, b) and not outputs else []

    system = System("turned", "", transforms, scripted().leaving, recover)
    by_state, at_rest = each_alone(DeliveryModel(system, (a, b)), "loses")
    assert (by_state.holds, at_rest.holds) == (False, True)


def test_a_snapshot_is_stored_and_not_shown():
    """So one that no reference run takes contradicts nothing."""
    junk = Element("snapshot", "junk")
    system = System(
        "hoarding",
        "",
        scripted("x").transforms,
        lambda working, outputs: [*working.of_kind("out"), *working.of_kind("snapshot")],
        lambda inputs, outputs: (bag(junk) if len(outputs) else inputs + bag(junk),),
    )
    assert str(classify(system, INPUT)) == "exactly-once"
    assert all(verdict.holds for verdict in each_alone(DeliveryModel(system, INPUT), "none"))


def test_progress_is_reported():
    told = []
    classify(flink_epochs(), letters("abc"), progress=told.append)
    assert told
    assert told[-1].unique_states > 0


def test_a_recovery_that_goes_on_where_the_script_was_is_exactly_once():
    system = scripted("xy", recover=lambda a, b: (plan("xy"[len(b) :]) if len(a) else EMPTY,))
    assert str(classify(system, INPUT)) == "exactly-once"
