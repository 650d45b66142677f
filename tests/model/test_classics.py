"""Numbers of states that others have published, and shortest counterexamples they know."""

import pytest
from support.models.classics import (
    DieHard,
    Grid,
    SlidingPuzzle,
    TransactionCommit,
    TwoPhaseCommit,
    is_consistent,
)

from cutwater.checking import always, check, replay, sometimes

COUNTED = [
    (DieHard(), 16),
    (TransactionCommit(3), 34),
    (TwoPhaseCommit(3), 288),
    (TwoPhaseCommit(5), 8_832),
    (SlidingPuzzle(2, 3), 360),
    (SlidingPuzzle(3, 3), 181_440),
]


@pytest.mark.parametrize(("model", "count"), COUNTED, ids=lambda v: type(v).__name__)
def test_the_number_of_states_is_the_published_one(model, count):
    found = check(model)
    assert (found.unique_states, found.is_exhaustive, found.is_reduced) == (count, True, False)
    assert found.summary() == f"explored all {count:,} states"


@pytest.mark.parametrize(("model", "count"), COUNTED[:5], ids=lambda v: type(v).__name__)
def test_depth_and_breadth_see_the_same_states(model, count):
    deep = check(model, search="depth")
    broad = check(model, search="breadth")
    assert deep.unique_states == broad.unique_states == count
    assert deep.transitions == broad.transitions
    assert deep.depth >= broad.depth


def test_four_litres_take_six_steps():
    """The shortest solution is known: fill big, to small, empty small, to small, fill big, …"""
    claim = always("the big jug never holds 4", lambda state: state[1] != 4)
    found = check(DieHard(), [claim])
    path = found.discoveries[claim.name].path
    assert path.actions == (
        "fill big", "to small", "empty small", "to small", "fill big", "to small",
    )  # fmt: skip
    assert path.last == (3, 4)
    assert replay(DieHard(), path.initial, path.actions) == path


def test_two_phase_commit_is_consistent_and_can_end_both_ways():
    claims = [
        always("consistent", lambda state: is_consistent(state[0])),
        sometimes("all commit", lambda state: set(state[0]) == {"committed"}),
        sometimes("all abort", lambda state: set(state[0]) == {"aborted"}),
        sometimes("one commits, one aborts", lambda state: not is_consistent(state[0])),
    ]
    found = check(TwoPhaseCommit(3), claims)
    assert [found.verdict(claim) for claim in claims] == [
        "holds",
        "holds: there is an example",
        "holds: there is an example",
        "does not hold",
    ]
    # prepare, note and obey for each of three, and one commit
    assert len(found.discoveries["all commit"].path) == 10
    assert not found.holds


def test_the_hardest_position_of_the_two_by_three_puzzle_takes_21_moves():
    assert check(SlidingPuzzle(2, 3)).depth == 21


def test_a_grid_has_its_places_and_no_more():
    seen = []
    claim = always("seen", lambda state: seen.append(state) or True)
    check(Grid(4, 5), [claim])
    assert sorted(seen) == sorted(Grid(4, 5).all_states())  # each once
