"""The micro-batch protocol holds, and each of its rules left out is rejected with a run."""

import pytest
from support.models.broken_microbatches import BROKEN
from support.models.protocols import (
    COMPLETE,
    CONSISTENT,
    assert_on_page,
    explored,
    finding,
    rules_overridden,
    section,
    told,
)

from cutwater.checking import replay
from cutwater.checking.explorer.paths import shrink
from cutwater.semantics.protocols.microbatch import Case, Microbatches

# what is explored, and how many states there are
HOLDS = {
    "early, a crash and a zombie": (Case(), 1_769),
    "early, a retried attempt": (Case(retries=1), 3_615),
    "commit, a retried attempt": (Case(sinks=("commit",), retries=1), 7_159),
    "other code": (Case(changes=("code",)), 7_115),
    "another ledger": (Case(changes=("ledger",)), 1_769),
    "replanned": (Case(changes=("replan",)), 6_705),
    "early and commit, any change": (
        Case(sinks=("early", "commit"), partitions=1, changes=("replan", "code", "ledger")),
        11_905,
    ),
    "the lock is lost": (Case(is_lock_lost=True), 6_166),
}


@pytest.mark.parametrize(("case", "states"), HOLDS.values(), ids=HOLDS)
def test_it_is_exactly_once(case, states):
    found = explored(Microbatches, case)
    assert found.holds
    assert found.is_exhaustive
    assert found.unique_states == states


@pytest.mark.slow
def test_it_is_exactly_once_with_two_sinks_of_two_partitions_and_any_change():
    case = Case(sinks=("early", "commit"), changes=("replan", "code", "ledger"))
    found = explored(Microbatches, case)
    assert found.holds
    assert found.is_exhaustive
    assert found.unique_states == 37_573


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_rejected_with_a_run_of_which_nothing_can_be_left_out(broken):
    found = finding(broken)
    again = replay(found.model, found.path.initial, found.path.actions)
    assert found.is_refuting(again)
    assert shrink(found.model, again, found.is_refuting) == again


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_the_protocol_itself_holds_where_the_broken_one_does_not(broken):
    found = explored(Microbatches, broken.case)
    assert found.holds
    assert found.is_exhaustive


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_one_rule_is_broken_at_a_time(broken):
    assert len(rules_overridden(broken)) == 1


def test_rows_beside_their_ledger_are_written_twice():
    assert told(finding(BROKEN["the ledger is written after the rows"]).path) == [
        "run 1: starts, takes its generation, claims sink 0, reads the checkpoint and the ledgers, "
        "plans 1 record as epoch 0, logs the offset of epoch 0, starts the tasks of epoch 0, "
        "writes the rows of epoch 0 in task 0, is killed",
        "run 2: starts, takes its generation, claims sink 0, reads the checkpoint and the ledgers, "
        "starts the tasks of epoch 0, writes the rows of epoch 0 in task 0",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "refuted"), [("replan", {CONSISTENT, COMPLETE}), ("code", {CONSISTENT})]
)
def test_replanning_and_other_code_depend_on_the_lock(change, refuted):
    """A whole run that continues without its lock removes a plan, or records its code, too late."""
    found = explored(Microbatches, Case(changes=(change,), is_lock_lost=True))
    assert found.discoveries.keys() == refuted


def test_the_page_shows_what_the_checker_finds():
    assert_on_page("micro-batches", section(BROKEN))
