"""A loop by a log releases what a run without failures releases; each broken rule is rejected."""

import pytest
from support.models.broken_loop_logs import BROKEN
from support.models.protocols import (
    CONSISTENT,
    assert_on_page,
    explored,
    finding,
    model_of,
    rules_overridden,
    section,
    told,
)

from cutwater.checking import check_model, replay, sometimes
from cutwater.checking.explorer.paths import shrink
from cutwater.semantics.protocols.loop_log import LoopLog
from cutwater.semantics.protocols.loop_log_model import failure_free
from cutwater.semantics.protocols.loop_log_world import LoopCase as Case
from cutwater.semantics.protocols.loop_log_world import Token

A, B, C = Token("a", 1), Token("b", 1), Token("c")
UNEVEN = ((Token("a", 2), B), (C,))

# what is explored, and how many states there are
HOLDS = {
    "without failures": (Case(crashes=0), 453),
    "a crash": (Case(), 4_227),
    "a crash during the recovery": (Case(crashes=2), 9_491),
    "a power loss": (Case(crashes=0, losses=1), 4_108),
    "a crash and a power loss": (Case(losses=1), 13_254),
    "two power losses": (Case(crashes=0, losses=2), 9_127),
    "a shared state": (Case(is_state_shared=True), 2_116),
    "a shared state, a power loss": (Case(is_state_shared=True, losses=1), 6_600),
    "the younger input epoch converges first": (Case(inputs=UNEVEN, losses=1), 25_545),
}


@pytest.mark.parametrize(("case", "states"), HOLDS.values(), ids=HOLDS)
def test_it_releases_what_a_run_without_failures_releases(case, states):
    found = explored(LoopLog, case)
    assert found.holds
    assert found.is_exhaustive
    assert found.unique_states == states


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "states"),
    [
        (Case(inputs=((A, B), (C,), (Token("d", 1),)), room=3, losses=1), 49_243),
        (Case(inputs=((Token("a", 2), B), (A, C), (Token("d", 1),))), 87_980),
    ],
    ids=["three input epochs at once", "three input epochs with room for two"],
)
def test_it_does_so_in_larger_cases(case, states):
    found = explored(LoopLog, case)
    assert found.holds
    assert found.is_exhaustive
    assert found.unique_states == states


def test_the_run_without_failures_is_one_round_after_the_other():
    assert failure_free(Case()) == ((0, ("a", "ab", "aba", "abab")), (1, ("c", "cc")))
    assert failure_free(Case(inputs=UNEVEN, is_state_shared=True)) == (
        (0, ("a", "ab", "aba", "abab", "ababa")),
        (1, ("ababac",)),
    )


@pytest.mark.parametrize("is_state_shared", [False, True])
def test_input_epochs_overlap_unless_they_share_a_state(is_state_shared):
    model, _ = model_of(LoopLog, Case(is_state_shared=is_state_shared, crashes=0))
    claim = sometimes("overlap", overlaps)
    assert bool(check_model(model, [claim]).discoveries) is not is_state_shared


def overlaps(world):
    """Does an epoch read new input and a round of older input?"""
    return any(plan.reads >= 0 and plan.end > plan.start for plan in world.plans)


def test_every_rule_has_a_broken_variant():
    assert {rule for rule, _ in BROKEN} == set(range(1, 10))


@pytest.mark.parametrize("broken", BROKEN.values(), ids=[title for _, title in BROKEN])
def test_a_broken_rule_is_rejected_with_a_run_of_which_nothing_can_be_left_out(broken):
    found = finding(broken)
    again = replay(found.model, found.path.initial, found.path.actions)
    assert found.is_refuting(again)
    assert shrink(found.model, again, found.is_refuting) == again


@pytest.mark.parametrize("broken", BROKEN.values(), ids=[title for _, title in BROKEN])
def test_the_protocol_itself_holds_where_the_broken_one_does_not(broken):
    found = explored(LoopLog, broken.case)
    assert found.holds
    assert found.is_exhaustive


@pytest.mark.parametrize("broken", BROKEN.values(), ids=[title for _, title in BROKEN])
def test_one_rule_is_broken_at_a_time(broken):
    assert len(rules_overridden(broken)) == 1


def test_a_replay_must_not_read_what_the_epoch_fed_back_before_the_crash():
    found = finding(BROKEN[2, "a replay reads what was fed back later"])
    assert found.claim == CONSISTENT
    lines = told(found.path)
    assert "publishes the log, is killed" in lines[0]
    assert lines[1].endswith("releases input epoch 0 as [a aa aaa aaaa]")
    assert failure_free(found.model.case) == ((0, ("a", "aa", "aaa")),)


def test_the_page_shows_what_the_checker_finds():
    titled = {f"{rule}. {title}": broken for (rule, title), broken in BROKEN.items()}
    assert_on_page("loops", section(titled))
