"""Definitions 9 and 10 of P2, by what they must reject."""

from dataclasses import replace

from support.delivery.scripts import INPUT, scripted

from cutwater.checking.guarantees.determinism import (
    deterministic,
    in_sequence,
    non_commutative,
    order_sensitive,
)
from cutwater.semantics.delivery.epochs import drifting_state, flink_epochs
from cutwater.semantics.delivery.histories import letters
from cutwater.semantics.delivery.published import all_idempotent, released_at_once


def test_definition_9_concatenation_does_not_commute():
    witness = non_commutative([(("a", "b"), "ab"), (("b", "a"), "ba")])
    assert (witness.x, witness.y, witness.result, witness.other) == ("a", "b", "ab", "ba")


def test_definition_9_rejects_operations_that_commute():
    assert non_commutative([((1, 2), 3), ((2, 1), 3)]) is None


def test_definition_9_rejects_an_operation_that_is_defined_in_one_order_only():
    """((y, x), s₂) ∈ D is needed."""
    assert non_commutative([((1, 2), 3)]) is None


def test_definition_9_rejects_results_that_both_orders_may_have():
    """((y, x), s₁) ∉ D is needed: a race that does not depend on the order."""
    both = [((1, 2), "s"), ((1, 2), "t"), ((2, 1), "s"), ((2, 1), "t")]
    assert non_commutative(both) is None
    assert non_commutative(both[:3]).result == "t"


def test_the_order_of_inputs_is_seen_in_what_a_system_shows():
    a, b = letters("ab")
    relation = in_sequence(flink_epochs(), a, b)
    shown = {pair: {out.value for out in outputs} for pair, outputs in relation}
    assert shown == {(a, b): {"a", "ab"}, (b, a): {"b", "ba"}}
    assert order_sensitive(flink_epochs(), (a, b)) is not None
    assert order_sensitive(all_idempotent(), (a, b)) is None


def test_definition_10_rejects_a_race():
    found = deterministic(released_at_once(), letters("ab"))
    assert not found.holds
    assert [out.value for out in found.outputs] == ["a", "b"]
    first, second = found.witness
    assert first.last.configuration.outputs == second.last.configuration.outputs
    for path, out in zip(found.witness, found.outputs, strict=True):
        assert out in path.last.configuration.working


def test_definition_10_accepts_drifting_state_although_its_operation_does_not_commute():
    inputs = letters("abc")
    found = deterministic(drifting_state(), inputs)
    assert (found.holds, found.is_exhaustive) == (True, True)
    assert order_sensitive(drifting_state(), inputs) is not None


def test_definition_10_does_not_count_snapshots():
    """When they are taken is not determined."""
    counted = replace(drifting_state(), shown=frozenset({"out", "checkpoint"}))
    assert not deterministic(counted, letters("ab")).holds


def test_definition_10_is_about_each_barrier():
    """Two outputs that leave through two barriers overtake each other, and each is determined."""
    race = scripted("xy", "yx")
    assert not deterministic(race, INPUT).holds
    assert deterministic(replace(race, barrier=lambda out: out.value), INPUT).holds


def test_a_search_that_was_cut_is_reported():
    assert not deterministic(drifting_state(), letters("ab"), max_states=3).is_exhaustive
