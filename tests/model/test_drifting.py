"""Drifting state is exactly-once whatever fails; with one thing broken it is not (P2, V)."""

import pytest
from support.drifting import broken
from support.drifting.runs import (
    EACH_BY_ITSELF,
    ONE,
    THREE,
    TWO,
    TWO_NODES,
    TWO_OUTPUTS,
    TWO_PRODUCERS,
    TWO_STEPS,
    WIDE,
    explored,
    told,
)

from cutwater.checking import replay
from cutwater.checking.guarantees.classify import classify_model, together
from cutwater.errors import InputError
from cutwater.semantics.drifting.delivery import DriftingDelivery
from cutwater.semantics.drifting.model import DriftingModel
from cutwater.semantics.drifting.protocol import Drifting
from cutwater.semantics.drifting.system import Crash, Faults

NOTHING = Faults()
CRASH = Faults(crashes=1)
LOSS = Faults(losses=1)
DUPLICATE = Faults(duplicates=1)
SUSPICION = Faults(suspicions=1)
PARTITION = Faults(partitions=1)

# the number of states of the reduced model
COUNTS = {
    "one input": (ONE, {NOTHING: 41, CRASH: 796, LOSS: 1_706, DUPLICATE: 1_650,
                        SUSPICION: 1_700, PARTITION: 1_457}),
    "two inputs": (TWO, {NOTHING: 107, CRASH: 2_618, PARTITION: 4_781}),
    "two outputs": (TWO_OUTPUTS, {NOTHING: 45, CRASH: 953, SUSPICION: 2_084, PARTITION: 1_710}),
    "two producers": (TWO_PRODUCERS, {NOTHING: 140, CRASH: 3_782, PARTITION: 6_350}),
    "two nodes": (TWO_NODES, {NOTHING: 248}),
    "two steps": (TWO_STEPS, {NOTHING: 915}),
    "three inputs": (THREE, {NOTHING: 332}),
}  # fmt: skip
SLOW_COUNTS = {
    "one input": (ONE, {Faults(crashes=2): 9_163, Faults(crashes=1, partitions=1): 30_552}),
    "two inputs": (TWO, {SUSPICION: 12_116}),
    "two nodes": (TWO_NODES, {CRASH: 18_936}),
    "two producers": (TWO_PRODUCERS, {SUSPICION: 19_666}),
    "two steps": (TWO_STEPS, {CRASH: 18_098}),
}


def cases(table):
    for name, (deployment, counts) in table.items():
        for faults, count in counts.items():
            words = [f"{n} {w}" for w in faults.__struct_fields__ if (n := getattr(faults, w))]
            yield pytest.param(deployment, faults, count, id=f"{name}, {' '.join(words)}")


def assert_exactly_once(deployment, faults, count, **options):
    _, claim, found = explored(Drifting(deployment), faults, **options)
    assert found.verdict(claim) == "holds"
    assert found.unique_states == count
    return found


@pytest.mark.parametrize(("deployment", "faults", "count"), list(cases(COUNTS)))
def test_it_is_exactly_once(deployment, faults, count):
    assert_exactly_once(deployment, faults, count)


@pytest.mark.slow
@pytest.mark.parametrize(("deployment", "faults", "count"), list(cases(SLOW_COUNTS)))
def test_it_is_exactly_once_in_larger_cases(deployment, faults, count):
    assert_exactly_once(deployment, faults, count)


@pytest.mark.parametrize(("faults", "count"), [(NOTHING, 334), (CRASH, 6_657)])
def test_and_in_full(faults, count):
    assert not assert_exactly_once(ONE, faults, count, reduce=False).is_reduced


def test_every_agent_crashes_in_some_run():
    model, _, _ = explored(Drifting(ONE), CRASH, max_states=1)
    crashed, seen, waiting = set(), set(), list(model.initial_states())
    while waiting:
        state = waiting.pop()
        for action in model.actions(state):
            if isinstance(action, Crash):
                crashed.add(action.agent)
            elif (there := model.step(state, action)) not in seen:
                seen.add(there)
                waiting.append(there)
    assert crashed == {
        "coordinator", "cluster state", "storage", "node 0", "barrier 0", "consumer 0",
    }  # fmt: skip


def test_all_faults_together_in_random_runs():
    faults = Faults(2, 2, 2, 2, 1)
    for deployment in (TWO_NODES, TWO_STEPS):
        _, claim, found = explored(Drifting(deployment), faults, search="random", walks=25)
        assert not found.is_refuted(claim)
        assert found.depth > 50


# variant, deployment, faults, and what happens in the shortest run
REJECTED = [
    (broken.ForgetsLast, ONE, CRASH,
     "start, node 0 +v1 (1), barrier 0 +v1 (1), barrier 0 crashes, start, consumer 0 has v1 (1), "
     "node 0 +v1 (2), barrier 0 +v1 (2), consumer 0 has v1 (2)"),
    # a crash between the two outputs of v1: the second one never comes
    (broken.TakesTheInputForLast, TWO_OUTPUTS, CRASH,
     "start, node 0 +v1 (1), barrier 0 +v1a (1), barrier 0 +v1b (1), barrier 0 crashes, start, "
     "consumer 0 has v1a (1), node 0 +v1 (2), barrier 0 +v1a (2), barrier 0 +v1b (2), "
     "snapshot 2 (2)"),
    (broken.ReleasesBeforeTheAcker, TWO, NOTHING,
     "start, node 0 +v2 (1), barrier 0 +v2 (1), consumer 0 has v2 (1)"),
    # v2 is in the state before its outputs have left, so when it comes again nothing changes
    (broken.SnapshotsSpeculation, TWO, CRASH,
     "start, node 0 +v2 (1), node 0 +v1 (1), barrier 0 +v1 (1), consumer 0 has v1 (1), "
     "snapshot 2 (1), consumer 0 crashes, start, node 0 +v2 (2)"),
    (broken.ReplaysFromBehind, TWO, CRASH,
     "start, node 0 +v1 (1), barrier 0 +v1 (1), consumer 0 has v1 (1), snapshot 2 (1), "
     "barrier 0 crashes, start"),
    (broken.ReplaysFromBeforeToUnnamedState, WIDE, CRASH,
     "start, node 0 +v1 (1), barrier 0 +v1 (1), consumer 0 has v1 (1), snapshot 2 (1), "
     "barrier 0 crashes, start, node 0 +v1 (2), barrier 0 +v1v1 (2), node 0 +v2 (2), "
     "barrier 0 +v1v1v2 (2), consumer 0 has v1v1v2 (2)"),
    (broken.SendsTwoBundles, TWO, NOTHING,
     "start, node 0 +v1 (1), barrier 0 +v1 (1), node 0 +v2 (1), barrier 0 +v1v2 (1), "
     "consumer 0 has v1v2 (1), consumer 0 has v1 (1), snapshot 2 (1)"),
    # the barrier goes on beside its successor, and both deliver v1
    (broken.TakesOldBundles, ONE, SUSPICION,
     "start, node 0 +v1 (1), barrier 0 +v1 (1), start, and barrier 0 lives on, node 0 +v1 (2), "
     "barrier 0 +v1 (2), consumer 0 has v1 (2), consumer 0 has v1 (1)"),
    (broken.TakesOldElements, TWO, SUSPICION,
     "start, start, and barrier 0 lives on, node 0 +v1 (1), barrier 0 +v1 (2), node 0 +v1 (2), "
     "node 0 +v2 (2), barrier 0 +v1v2 (2)"),
    # P2 as printed: v1 is in the snapshot and still at its barrier
    (broken.SnapshotsWithoutBarriers, ONE, CRASH,
     "start, node 0 +v1 (1), barrier 0 +v1 (1), snapshot 2 (1), consumer 0 crashes, start"),
    (broken.ReplaysBeforeAllAreReady, ONE, NOTHING, "start"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("variant", "deployment", "faults", "expected"), REJECTED, ids=[r[0].__name__ for r in REJECTED]
)
def test_a_broken_variant_is_rejected(variant, deployment, faults, expected):
    model, claim, found = explored(variant(deployment), faults)
    assert found.is_refuted(claim)
    path = found.discoveries[claim.name].path
    assert told(path.actions) == expected
    for left_out in range(len(path)):
        shorter = (*path.actions[:left_out], *path.actions[left_out + 1 :])
        try:
            last = replay(model, path.initial, shorter).last
        except InputError:
            continue
        assert model.is_exactly_once(model.observation(last))


@pytest.mark.parametrize(
    "variant",
    [Drifting, broken.ForgetsLast, broken.SnapshotsWithoutBarriers, broken.TakesOldBundles],
)
def test_reduced_or_not_the_verdict_is_the_same(variant):
    _, claim, reduced = explored(variant(ONE), CRASH)
    _, same, full = explored(variant(ONE), CRASH, reduce=False)
    assert reduced.is_refuted(claim) == full.is_refuted(same) == (variant is not Drifting)


@pytest.mark.parametrize(
    ("deployment", "is_reduced"),
    [(ONE, False), (TWO, True), (WIDE, True)],
    ids=["one input, in full", "window of 2", "window of 3"],
)
def test_replay_from_before_the_snapshot_does_no_harm(deployment, is_reduced):
    """An input that is known by its t is in its place already, and its outputs are behind t_last.

    It does where a state does not know what it is made of: `ReplaysFromBeforeToUnnamedState`.
    """
    _, claim, found = explored(broken.ReplaysFromBefore(deployment), CRASH, reduce=is_reduced)
    assert found.verdict(claim) == "holds"


def assert_classified_as_exactly_once(deployment, faults):
    found = classify_model(DriftingDelivery(DriftingModel(Drifting(deployment), faults)))
    assert (str(found), found.is_settled) == ("exactly-once", True)


@pytest.mark.parametrize(("deployment", "faults", "_"), list(cases(COUNTS)))
def test_definition_6_each_run_looks_like_one_without_faults(deployment, faults, _):
    assert_classified_as_exactly_once(deployment, faults)


@pytest.mark.slow
@pytest.mark.parametrize(("deployment", "faults", "_"), list(cases(SLOW_COUNTS)))
def test_definition_6_each_run_of_larger_cases_does(deployment, faults, _):
    assert_classified_as_exactly_once(deployment, faults)


@pytest.mark.parametrize(
    ("variant", "deployment", "faults"),
    [row[:3] for row in REJECTED],
    ids=[r[0].__name__ for r in REJECTED],
)
def test_definition_6_rejects_what_differs_from_the_in_order_fold(variant, deployment, faults):
    model = DriftingDelivery(DriftingModel(variant(deployment), faults))
    found = together(model, "none")
    assert found.witness is not None
    seen = model.model.observation(found.witness.last.system)
    assert not model.model.is_exactly_once(seen)


# what is left where one thing is broken: outputs are missing, or come again
AT_MOST_ONCE = [
    (broken.SnapshotsSpeculation, TWO, CRASH),
    (broken.ReplaysFromBehind, TWO, CRASH),
    (broken.SnapshotsWithoutBarriers, ONE, CRASH),
]
AT_LEAST_ONCE = [(broken.ForgetsLast, EACH_BY_ITSELF, CRASH)]


@pytest.mark.parametrize(("variant", "deployment", "faults"), AT_MOST_ONCE)
def test_definition_7_it_loses_inputs_and_no_more(variant, deployment, faults):
    model = DriftingDelivery(DriftingModel(variant(deployment), faults))
    assert together(model, "loses").holds
    assert not together(model, "repeats").holds


@pytest.mark.parametrize(("variant", "deployment", "faults"), AT_LEAST_ONCE)
def test_definition_8_it_repeats_inputs_and_no_more(variant, deployment, faults):
    model = DriftingDelivery(DriftingModel(variant(deployment), faults))
    assert together(model, "repeats").holds
    assert not together(model, "loses").holds


def test_definition_8_an_output_that_comes_again_is_not_an_input_that_does():
    """Behind a window of two, v1 twice is v1, v1v1."""
    model = DriftingDelivery(DriftingModel(broken.ForgetsLast(ONE), CRASH))
    assert not together(model, "repeats").holds
