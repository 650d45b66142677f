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

from cutwater.checking import always, check_model, eventually, replay, sometimes
from cutwater.errors import InputError

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
    found = check_model(model)
    assert (found.unique_states, found.is_exhaustive, found.is_reduced) == (count, True, False)
    assert found.summary() == f"explored all {count:,} states"


@pytest.mark.parametrize(("model", "count"), COUNTED[:5], ids=lambda v: type(v).__name__)
def test_depth_and_breadth_see_the_same_states(model, count):
    deep = check_model(model, search="depth")
    broad = check_model(model, search="breadth")
    assert deep.unique_states == broad.unique_states == count
    assert deep.transitions == broad.transitions
    assert deep.depth >= broad.depth


def test_four_litres_take_six_steps():
    """The shortest solution is known: fill big, to small, empty small, to small, fill big, …"""
    claim = always("the big jug never holds 4", lambda state: state[1] != 4)
    found = check_model(DieHard(), [claim])
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
    found = check_model(TwoPhaseCommit(3), claims)
    assert [found.verdict(claim) for claim in claims] == [
        "holds",
        "holds: there is an example",
        "holds: there is an example",
        "does not hold",
    ]
    # prepare, note and obey for each of three, and one commit
    assert len(found.discoveries["all commit"].path) == 10
    assert not found.holds


def like_parts_sorted(state):
    """Resource managers differ by number alone: one state stands for all ways to number them."""
    rms, tm, prepared, sent = state
    parts = sorted((known, n in prepared, n in sent) for n, known in enumerate(rms))
    orders = frozenset(message for message in sent if isinstance(message, str))
    return (
        tuple(known for known, _, _ in parts),
        tm,
        frozenset(n for n, part in enumerate(parts) if part[1]),
        orders | {n for n, part in enumerate(parts) if part[2]},
    )


def managers_sorted(state):
    """Stable, by the managers' own states alone: fewer processes would count as one."""
    rms, tm, prepared, sent = state
    place = {n: i for i, n in enumerate(sorted(range(len(rms)), key=rms.__getitem__))}
    return (
        tuple(sorted(rms)),
        tm,
        frozenset(place[n] for n in prepared),
        frozenset(place.get(message, message) for message in sent),
    )


def test_two_phase_commit_up_to_symmetry_is_the_published_number():
    found = check_model(TwoPhaseCommit(5), symmetric=managers_sorted, search="depth")
    assert (found.unique_states, found.is_exhaustive, found.is_reduced) == (665, True, True)


@pytest.mark.parametrize("search", ["breadth", "depth"])
def test_as_many_are_looked_at_as_there_are_classes_of_states(search):
    model = TwoPhaseCommit(4)
    classes = set()
    claim = always("seen", lambda state: classes.add(like_parts_sorted(state)) or True)
    assert check_model(model, [claim]).holds
    found = check_model(model, symmetric=like_parts_sorted, search=search)
    assert (found.unique_states, found.is_exhaustive) == (len(classes), True)
    assert len(classes) < check_model(model).unique_states / 5


def test_a_path_up_to_symmetry_is_one_of_the_model_itself():
    claims = [
        always("never all committed", lambda state: set(state[0]) != {"committed"}),
        always("nobody aborts", lambda state: "aborted" not in state[0]),
    ]
    model = TwoPhaseCommit(3)
    found = check_model(model, claims, symmetric=like_parts_sorted)
    for claim in claims:
        path = found.discoveries[claim.name].path
        assert replay(model, path.initial, path.actions) == path
        assert not claim.predicate(path.last)
        assert len(path) == len(check_model(model, [claim]).discoveries[claim.name].path)


@pytest.mark.parametrize(
    ("claims", "search"),
    [([eventually("it ends", lambda state: True, fair=str)], "breadth"), ([], "random")],
)
def test_symmetry_that_would_not_be_sound_is_refused(claims, search):
    with pytest.raises(InputError) as raised:
        check_model(TwoPhaseCommit(3), claims, search=search, symmetric=like_parts_sorted)
    assert raised.value.problems[0].code == "no-symmetry"


def test_the_hardest_position_of_the_two_by_three_puzzle_takes_21_moves():
    assert check_model(SlidingPuzzle(2, 3)).depth == 21


def test_a_grid_has_its_places_and_no_more():
    seen = []
    claim = always("seen", lambda state: seen.append(state) or True)
    check_model(Grid(4, 5), [claim])
    assert sorted(seen) == sorted(Grid(4, 5).all_states())  # each once
