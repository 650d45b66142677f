"""Snapshots taken in three ways, and recovery task by task: what holds, and what is rejected."""

import pytest
from support.models.broken_recoveries import CUTS, ONE_EPOCH, ONE_SOURCE, RECOVERIES

from cutwater.checking import always, check_model, replay, sometimes
from cutwater.checking.explorer.paths import shrink
from cutwater.semantics.recovering import (
    Barriers,
    ChandyLamport,
    CutModel,
    RecoveryCase,
    RecoveryModel,
    RecoveryRules,
    Uncoordinated,
)
from cutwater.semantics.recovering.cuts import (
    MEETING,
    PIPELINE,
    System,
    has_each_once,
    has_messages_under_way,
    has_only_what_was_sent,
    is_consistent,
)
from cutwater.semantics.recovering.one_by_one import is_all_published, is_explained

SMALL = System((("a",), ("x",)), MEETING.channels)
CONSISTENT, ONCE, UNDER_WAY = "the snapshot is consistent", "each once", "messages under way"
EXPLAINED, PUBLISHED = "a run without failures explains it", "in the end all of it"


def of_cuts(way, system):
    model = CutModel(way, system)
    return model, [
        always(CONSISTENT, lambda state: is_consistent(model, state)),
        always(ONCE, lambda state: has_each_once(model, state)),
    ]


def of_recovery(rules, case):
    model = RecoveryModel(rules, case)
    return model, [
        always(EXPLAINED, lambda published: is_explained(case, published), observed=True),
        always(PUBLISHED, lambda state: is_all_published(model, state)),
    ]


def refuting(model, claim):
    """Whether a path ends where a claim does not hold."""

    def refutes(path):
        seen = model.observation(path.last) if claim.is_of_observation else path.last
        return not claim.predicate(seen)

    return refutes


def shortest(model, claims):
    """The first claim that is refuted, and a run of which nothing can be left out."""
    for claim in claims:
        found = check_model(model, [claim])
        if claim.name in found.discoveries:
            path = found.discoveries[claim.name].path
            return claim.name, shrink(model, path, refuting(model, claim))
    raise AssertionError("it is not rejected")


def told(path):
    return [str(move) for move in path.actions]


# P1, Fig. 3: the way, the system, how many states, and are messages under way in a snapshot?
WAYS = {
    "Chandy and Lamport, Fig. 3b": (ChandyLamport(), PIPELINE, 1_538, True),
    "Chandy and Lamport, where sources meet": (ChandyLamport(), SMALL, 2_958, True),
    "barriers, Fig. 3c": (Barriers(), PIPELINE, 250, False),
    "barriers, where sources meet": (Barriers(), SMALL, 450, False),
    "barriers, with more to send": (Barriers(), MEETING, 4_578, False),
}


@pytest.mark.parametrize(("way", "system", "states", "is_under_way"), WAYS.values(), ids=WAYS)
def test_a_coordinated_snapshot_is_consistent_and_can_be_gone_back_to(
    way, system, states, is_under_way
):
    model, claims = of_cuts(way, system)
    found = check_model(model, [*claims, sometimes(UNDER_WAY, has_messages_under_way)])
    assert found.is_exhaustive
    assert found.unique_states == states
    assert found.discoveries.keys() == ({UNDER_WAY} if is_under_way else set())


def test_a_snapshot_without_coordination_has_what_was_never_sent():
    """P1, Fig. 3a."""
    model = CutModel(Uncoordinated(), PIPELINE)
    sent = always("only what was sent", lambda state: has_only_what_was_sent(model, state))
    _, path = shortest(model, [sent])
    assert told(path) == [
        "p1 takes its snapshot",
        "p1 sends",
        "p2 takes from channel 0",
        "p2 takes its snapshot",
        "p3 takes its snapshot",
    ]


HOLDS = {
    "a task is suspected that is up": (ONE_EPOCH, 4_565),
    "a task crashes": (RecoveryCase(epochs=(("a", "x"),), crashes=1, mistakes=0), 10_300),
    "two epochs of one source": (ONE_SOURCE, 9_429),
}
LARGER = {
    "two epochs, a task is suspected": (RecoveryCase(crashes=0, mistakes=1), 44_379),
    "two epochs, a task crashes": (RecoveryCase(crashes=1, mistakes=0), 89_856),
}


@pytest.mark.parametrize(
    ("case", "states"),
    [
        *(pytest.param(*held, id=name) for name, held in HOLDS.items()),
        *(pytest.param(*held, id=name, marks=pytest.mark.slow) for name, held in LARGER.items()),
    ],
)
def test_tasks_that_recover_one_by_one_show_a_run_without_failures(case, states):
    found = check_model(*of_recovery(RecoveryRules(), case))
    assert found.holds
    assert found.is_exhaustive
    assert found.unique_states == states


BROKEN = {
    **{title: (of_cuts, broken, broken.system) for title, broken in CUTS.items()},
    **{title: (of_recovery, broken, broken.case) for title, broken in RECOVERIES.items()},
}
# which claim is refuted, and in how many steps
STEPS = {
    "messages under way are not kept": (CONSISTENT, 6),
    "channels are not blocked": (CONSISTENT, 8),
    "the first barrier takes the snapshot": (CONSISTENT, 7),
    "old messages are taken": (EXPLAINED, 18),
    "new messages are dropped": (EXPLAINED, 12),
    "the generation is not sent": (PUBLISHED, 9),
    "snapshots of an old generation count": (EXPLAINED, 23),
    "only what crashed recovers": (PUBLISHED, 7),
}


@pytest.mark.parametrize("title", BROKEN)
def test_a_broken_rule_is_rejected_with_a_run_of_which_nothing_can_be_left_out(title):
    model_of, broken, case = BROKEN[title]
    model, claims = model_of(broken(), case)
    name, path = shortest(model, claims)
    (claim,) = (claim for claim in claims if claim.name == name)
    again = replay(model, path.initial, path.actions)
    assert refuting(model, claim)(again)
    assert (name, len(path.actions)) == STEPS[title]


@pytest.mark.parametrize("title", BROKEN)
def test_one_rule_is_broken_at_a_time(title):
    broken = BROKEN[title][1]
    assert len([name for name in vars(broken) if callable(vars(broken)[name])]) == 1


def test_a_task_that_has_not_learned_of_the_recovery_drops_what_is_replayed():
    broken = RECOVERIES["new messages are dropped"]
    _, path = shortest(*of_recovery(broken(), broken.case))
    assert told(path) == [
        "a is suspected; a new generation",
        "a recovers",
        "a reads its next word",
        "b recovers",
        "b reads its next word",
        "middle recovers",
        "a takes the barrier",
        "b takes the barrier",
        "sink recovers",
        "middle takes the barrier",
        "sink takes the barrier",
        "the coordinator commits an epoch",
    ]


def test_without_the_sources_nobody_sends_again_what_a_crash_lost():
    broken = RECOVERIES["only what crashed recovers"]
    _, path = shortest(*of_recovery(broken(), broken.case))
    assert told(path) == [
        "a reads its next word",
        "a takes the barrier",
        "b reads its next word",
        "b takes the barrier",
        "middle crashes",
        "middle is suspected; a new generation",
        "middle recovers",
    ]
