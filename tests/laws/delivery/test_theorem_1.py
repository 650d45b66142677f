"""Theorem 1 of P2, as an equivalence over all small systems of a family."""

from collections import Counter

import pytest
from support.delivery.races import races
from support.repo.package import ROOT

from cutwater.checking.guarantees.classify import classify, each_alone
from cutwater.checking.guarantees.recoverability import (
    Race,
    any_fitting,
    has_recovery,
    in_premise,
    snapshot_condition,
)
from cutwater.checking.guarantees.release import recovers_from_storage
from cutwater.checking.guarantees.table import VARIANTS
from cutwater.semantics.delivery.histories import letters
from cutwater.semantics.delivery.model import DeliveryModel


def derivations(*pairs):
    return tuple((frozenset(taken.split()), made) for taken, made in pairs)


def findings(family):
    return Counter(
        (in_premise(race), snapshot_condition(race), has_recovery(race)) for race in family
    )


def test_condition_1_holds_if_and_only_if_some_recovery_is_exactly_once():
    """The smaller part of the family; the rest is `slow`."""
    assert findings(races(2)) == {
        (True, True, True): 7,
        (True, False, False): 2,
        (False, True, True): 11,
        (False, False, True): 4,
        (False, False, False): 2,
    }


@pytest.mark.slow
def test_condition_1_holds_if_and_only_if_some_recovery_is_exactly_once_in_458_systems():
    found = findings(races())
    assert found == {
        # in the premise, (1), exactly-once
        (True, True, True): 76,
        (True, False, False): 49,
        # outside the premise: (1) is still enough, and no longer needed
        (False, True, True): 150,
        (False, False, True): 126,
        (False, False, False): 57,
    }
    held = sum(count for (is_in_premise, *_), count in found.items() if is_in_premise)
    document = " ".join((ROOT / "docs" / "guarantees.md").read_text().split())
    sentence = f"on {sum(found.values())} small systems, of which {held} meet its premise"
    assert sentence in document


def test_the_snapshot_of_s_before_the_output():
    """What P2 draws in Fig. 2: s is stored first, then b₂ leaves."""
    race = Race(derivations(("s", "b")), first="s", second="b")
    assert (in_premise(race), snapshot_condition(race), has_recovery(race)) == (True, True, True)


def test_two_outputs_of_one_state_without_a_snapshot():
    race = Race(derivations(("s", "b1"), ("s", "b2")), first="b1", second="b2")
    assert (in_premise(race), snapshot_condition(race), has_recovery(race)) == (True, False, False)


def test_outside_the_premise_no_snapshot_is_needed():
    """b₂ is the same whichever part came first."""
    race = Race(derivations(("s", "b1"), ("s", "b2")), "b1", "b2", frozenset({"b1", "b2"}))
    assert (in_premise(race), snapshot_condition(race), has_recovery(race)) == (False, False, True)


def test_condition_1_as_printed_holds_of_nothing_or_of_what_must_be_recomputed():
    """Why it is not read as printed: G without b₁, G with b₁, and G empty."""
    stored = Race(derivations(("s", "b")), first="s", second="b")
    unstored = Race(derivations(("s", "b1"), ("s", "b2")), first="b1", second="b2")
    chain = Race(derivations(("s", "b1"), ("b1", "b2")), first="b1", second="b2")
    assert [has_recovery(race) for race in (stored, chain, unstored)] == [True, True, False]
    assert [as_printed(race, reflexive=False) for race in (stored, chain)] == [False, False]
    assert [as_printed(race, reflexive=True) for race in (chain,)] == [False]
    assert [as_printed(race, reflexive=False) for race in (unstored,)] == [True]


def as_printed(race, *, reflexive):
    """G = Cl(b₁) ∩ Cl⁻¹(b₂), and for all (u, v) ∈ D with u in Cl(s): v ⊂ G ⇒ u ⊂ G."""

    def closure(start):
        found = {start}
        for taken, made in race.derivations:
            found |= {made} if taken & found else set()
        return found

    names = {"s", *(made for _, made in race.derivations)}
    after = closure(race.first) - (set() if reflexive else {race.first})
    between = {v for v in after if race.second in closure(v)} & names
    return all(taken <= between for taken, made in race.derivations if made in between)


def test_with_a_second_derivation_condition_1_is_not_necessary():
    """Why each element has one: b₂ can be made of b₁ alone, and also of s."""
    race = Race(derivations(("s", "b1"), ("b1", "b2"), ("s", "b2")), first="b1", second="b2")
    assert (in_premise(race), snapshot_condition(race), has_recovery(race)) == (True, False, True)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.make.__name__)
def test_an_unrestricted_recovery_is_exactly_once_for_every_system(variant):
    """State by state and at rest; F sees no order, so not by run (see `test_classify`)."""
    for recovery in variant.recoveries:
        system = any_fitting(variant.make(recovery), letters("ab"))
        by_state, at_rest = each_alone(DeliveryModel(system, letters("ab")), "none")
        assert by_state.holds
        assert at_rest.holds
        assert not recovers_from_storage(system, letters("ab")).holds  # F ⊆ A ∪ B excludes it


def test_an_unrestricted_recovery_refutes_the_unrestricted_theorem():
    """A race that no restricted recovery saves, with F(A, B) = {W : (A, B, W) reachable}."""
    refuted = 0
    for race in races(2):
        if in_premise(race) and not has_recovery(race):
            system = any_fitting(race.system(), race.inputs)
            assert str(classify(system, race.inputs)) == "exactly-once"
            assert not recovers_from_storage(system, race.inputs).holds
            refuted += 1
    assert refuted == 2
