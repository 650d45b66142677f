"""The systems of P2's sections II, IV and V: how large they are, and what they keep."""

import pytest
from support.repo.package import ROOT

from cutwater.checking import check_model
from cutwater.checking.guarantees.classify import classify, together
from cutwater.checking.guarantees.determinism import deterministic, order_sensitive
from cutwater.checking.guarantees.release import (
    outputs_are_saved,
    recovers_from_storage,
    waits_for,
)
from cutwater.checking.guarantees.table import VARIANTS, as_markdown, rows, runs_as_markdown
from cutwater.semantics.delivery.epochs import drifting_state, flink_epochs
from cutwater.semantics.delivery.histories import letters
from cutwater.semantics.delivery.model import DeliveryModel
from cutwater.semantics.delivery.published import (
    all_idempotent,
    micro_batches,
    released_at_once,
    strong_productions,
)

COUNTS = {
    # inputs abc: without failures, with one, with two
    strong_productions: (346, 692, 1038),
    micro_batches: (102, 204, 306),
    flink_epochs: (884, 2036, 3188),
    drifting_state: (198, 476, 754),
    all_idempotent: (41, 205, 369),
    released_at_once: (96, 324, 576),
}
OWN = [strong_productions, micro_batches, flink_epochs, drifting_state, all_idempotent]


@pytest.mark.parametrize("make", COUNTS)
def test_the_number_of_states(make):
    counts = []
    for failures in range(3):
        found = check_model(DeliveryModel(make(), letters("abc"), failures=failures))
        assert found.is_exhaustive
        counts.append(found.unique_states)
    assert tuple(counts) == COUNTS[make]


def test_the_states_of_the_idempotent_system_are_counted_by_a_formula():
    """Each input that has entered waits, is an output, or has left; and one state rests."""
    for count, text in enumerate(["", "a", "ab", "abc", "abcd"]):
        model = DeliveryModel(all_idempotent(), letters(text), failures=0)
        assert check_model(model).unique_states == sum(3**k for k in range(count + 1)) + 1


@pytest.mark.parametrize("make", OWN)
def test_three_inputs_and_one_failure_are_exactly_once(make):
    assert str(classify(make(), letters("abc"))) == "exactly-once"


@pytest.mark.slow
@pytest.mark.parametrize("make", OWN)
def test_three_inputs_and_two_failures_are_exactly_once(make):
    found = together(DeliveryModel(make(), letters("abc"), failures=2), "none")
    assert (found.holds, found.is_exhaustive) == (True, True)


@pytest.mark.parametrize("make", OWN)
def test_section_iii_f_no_output_leaves_before_a_snapshot_that_holds_its_state(make):
    """Where order matters and races decide it; determinism is the way around it."""
    system, inputs = make(), letters("abc")
    must_wait = order_sensitive(system, inputs) is not None
    must_wait = must_wait and not deterministic(system, inputs).holds
    assert must_wait == (make not in (drifting_state, all_idempotent))
    assert bool(waits_for(system, inputs)) == must_wait


def test_drifting_state_releases_an_output_before_its_snapshot():
    found = outputs_are_saved(drifting_state(), letters("ab"), "checkpoint")
    (discovery,) = found.discoveries.values()
    assert [str(step) for step in discovery.path.actions] == [
        "in a enters",
        "{in a} becomes {out a, state a}",
        "out a leaves",
    ]


@pytest.mark.parametrize(
    ("make", "recovery"),
    [
        (strong_productions, "release before the write"),
        (micro_batches, "state stored apart from outputs"),
        (flink_epochs, "release before the commit"),
    ],
)
def test_a_racing_system_that_does_not_wait_is_not_exactly_once(make, recovery):
    system, inputs = make(recovery), letters("ab")
    assert waits_for(system, inputs) == ()
    assert not together(DeliveryModel(system, inputs), "none").holds


def test_the_recoveries_read_only_what_is_stored():
    for make in OWN:
        assert recovers_from_storage(make(), letters("ab")).holds
    assert not recovers_from_storage(released_at_once(), letters("ab")).holds


DOCUMENT = (ROOT / "docs" / "guarantees.md").read_text()
SLOW = (flink_epochs, drifting_state, released_at_once)


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(v, id=v.make.__name__, marks=pytest.mark.slow if v.make in SLOW else ())
        for v in VARIANTS
    ],
)
def test_the_table_in_the_documentation_is_the_computed_one(variant):
    found = list(rows([variant]))
    own, *broken = found
    if variant.make in OWN:
        assert own.guarantee == "exactly-once"
        assert len([row for row in broken if row.guarantee != "exactly-once" and row.run]) >= 2
    head, line, *cells = as_markdown(found).splitlines()
    assert f"\n{head}\n{line}\n" in DOCUMENT
    assert "\n" + "\n".join(cells) + "\n" in DOCUMENT
    assert "\n" + runs_as_markdown(found) + "\n" in DOCUMENT
    documented = [row for row in DOCUMENT.splitlines() if row.startswith(f"| {own.system} |")]
    assert documented == cells


def test_the_table_in_the_documentation_has_no_other_systems():
    names = {variant.make(variant.recoveries[0]).name for variant in VARIANTS}
    begin = DOCUMENT.index("| system | recovery |")
    lines = DOCUMENT[begin:].split("\n\n")[0].splitlines()[2:]
    assert {line.split(" | ")[0].removeprefix("| ") for line in lines} == names
    assert len(lines) == sum(len(variant.recoveries) for variant in VARIANTS)
