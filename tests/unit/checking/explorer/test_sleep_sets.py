"""Of two independent actions one order is taken, and every state is found, each at its distance."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.models.classics import CommutingTwoPhaseCommit, TwoPhaseCommit

from cutwater.checking import always, check_model, eventually
from cutwater.checking.explorer import sleep_sets


class Cells:
    """Actions that read cells and write one; two are independent if neither disturbs the other.

    A cell is written with a number below three that depends on what is read; a guard on what is
    read says where an action is possible, so states recur, and actions enable and disable others.
    """

    def __init__(self, actions, size):
        self.given, self.size = actions, size

    def initial_states(self):
        return [(0,) * self.size]

    def actions(self, state):
        for number, (reads, _, guard, _) in enumerate(self.given):
            if sum(state[cell] for cell in reads) % 3 in guard:
                yield number

    def step(self, state, action):
        reads, writes, _, adds = self.given[action]
        value = (sum(state[cell] for cell in reads) + adds) % 3
        return (*state[:writes], value, *state[writes + 1 :])

    def independent(self, one, other):
        (reads, writes, _, _), (other_reads, other_writes, _, _) = (
            self.given[one],
            self.given[other],
        )
        return writes != other_writes and writes not in other_reads and other_writes not in reads


SIZE = 4
ACTIONS = st.tuples(
    st.frozensets(st.integers(0, SIZE - 1), max_size=2),
    st.integers(0, SIZE - 1),
    st.frozensets(st.integers(0, 2), min_size=1),
    st.integers(0, 2),
)
SYSTEMS = st.lists(ACTIONS, min_size=1, max_size=7).map(lambda actions: Cells(actions, SIZE))


def looked_at(model, **options):
    """State -> the order in which it was looked at, and how the search ended."""
    seen = []
    claim = always("seen", lambda state: seen.append(state) or True)
    found = check_model(model, [claim], **options)
    return seen, found


def distances(model):
    """State -> its distance from where a run starts, by plain levels."""
    level, found, depth = set(model.initial_states()), {}, 0
    while level:
        found |= dict.fromkeys(level, depth)
        after = {model.step(s, a) for s in level for a in model.actions(s)}
        level, depth = after - found.keys(), depth + 1
    return found


@given(SYSTEMS)
def test_states_with_sleep_sets_eq_states_without(model):
    asleep, slept = looked_at(model)
    plain, found = looked_at(model, reduce=False)
    assert sorted(asleep) == sorted(plain) == sorted(distances(model))
    assert slept.transitions <= found.transitions
    assert (slept.is_exhaustive, slept.is_reduced) == (True, False)


@given(SYSTEMS, st.data())
def test_length_of_a_counterexample_eq_distance_of_the_state(model, data):
    far = distances(model)
    goal = data.draw(st.sampled_from(sorted(far)))
    claim = always("never there", lambda state: state != goal)
    path = check_model(model, [claim]).discoveries[claim.name].path
    assert (len(path), path.last) == (far[goal], goal)
    assert all(a in model.actions(s) for s, a in zip(path.states, path.actions, strict=False))


@given(SYSTEMS, st.integers(0, 3))
def test_states_up_to_a_depth_eq_those_without(model, depth):
    asleep, slept = looked_at(model, max_depth=depth)
    plain, found = looked_at(model, max_depth=depth, reduce=False)
    assert sorted(asleep) == sorted(plain)
    assert slept.is_exhaustive == found.is_exhaustive


@given(SYSTEMS)
def test_actions_beyond_the_most_that_may_sleep_are_taken(model):
    most, sleep_sets.MOST_ACTIONS = sleep_sets.MOST_ACTIONS, 2
    try:
        assert sorted(looked_at(model)[0]) == sorted(distances(model))
    finally:
        sleep_sets.MOST_ACTIONS = most


def test_no_more_actions_sleep_than_may(monkeypatch):
    """One alone has no other to sleep behind; of two, one does."""
    plain = check_model(TwoPhaseCommit(3)).transitions
    monkeypatch.setattr(sleep_sets, "MOST_ACTIONS", 1)
    assert check_model(CommutingTwoPhaseCommit(3)).transitions == plain
    monkeypatch.setattr(sleep_sets, "MOST_ACTIONS", 2)
    assert check_model(CommutingTwoPhaseCommit(3)).transitions < plain


@pytest.mark.parametrize(("count", "states"), [(3, 288), (5, 8_832)])
def test_two_phase_commit_has_its_published_states_with_fewer_steps(count, states):
    plain, slept = check_model(TwoPhaseCommit(count)), check_model(CommutingTwoPhaseCommit(count))
    assert plain.unique_states == slept.unique_states == states
    assert slept.depth == plain.depth
    assert slept.transitions < plain.transitions / 2


def test_what_two_phase_commit_says_of_its_actions_is_so():
    model = CommutingTwoPhaseCommit(3)
    for state in distances(model):
        for one, other in combinations(model.actions(state), 2):
            if model.independent(one, other):
                after, before = model.step(state, one), model.step(state, other)
                assert other in model.actions(after)
                assert one in model.actions(before)
                assert model.step(after, other) == model.step(before, one)


class Overriding(CommutingTwoPhaseCommit):
    """Says nothing of its own of what commutes."""

    def step(self, state, action):
        return super().step(state, action)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (Overriding(3), {}),
        (CommutingTwoPhaseCommit(3), {"reduce": False}),
        (CommutingTwoPhaseCommit(3), {"search": "depth"}),
        (
            CommutingTwoPhaseCommit(3),
            {"properties": [eventually("it ends", lambda state: True, fair=str)]},
        ),
    ],
    ids=["a subclass with another step", "not reduced", "depth first", "eventually"],
)
def test_nothing_sleeps_where_it_was_not_shown_to_be_sound(model, options):
    assert check_model(model, **options).transitions == check_model(TwoPhaseCommit(3)).transitions
