"""What happens eventually, on every fair execution."""

import gc
import tracemalloc

import pytest
from support.models.classics import Grid

from cutwater.checking import check_model, eventually, replay


class Table:
    """A model written down as {state: {action: state}}; an action is (class, name)."""

    def __init__(self, table, starts=("s",)):
        self.table, self.starts = table, starts

    def initial_states(self):
        return self.starts

    def actions(self, state):
        return list(self.table.get(state, {}))

    def step(self, state, action):
        return self.table[state][action]


def kind(action):
    return action[0]


def goal(*, fair=kind, rare=None):
    return eventually("the goal is reached", lambda state: state == "goal", fair=fair, rare=rare)


def refuted(table, claim=None, **options):
    """The path of the counterexample, checked to be a run; None if the claim holds."""
    claim = claim or goal()
    model = Table(table, **options)
    found = check_model(model, [claim])
    if found.holds:
        assert found.verdict(claim) == "holds"
        return None
    path = found.discoveries[claim.name].path
    again = replay(model, path.initial, path.actions)
    assert again.states == path.states
    assert "goal" not in path.states
    if path.loop is not None:
        assert path.states[path.loop] == path.last
        assert path.loop < len(path)
    return path


A, B, C = ("p", "a"), ("q", "b"), ("q", "c")


def test_a_state_where_nothing_is_possible_ends_an_execution():
    path = refuted({"s": {A: "t"}})
    assert (path.states, path.loop) == (("s", "t"), None)


def test_the_goal_on_the_way_is_enough():
    assert refuted({"s": {A: "goal"}, "goal": {A: "end"}}) is None
    assert refuted({"s": {A: "goal", B: "t"}, "t": {A: "goal"}}) is None


def test_a_goal_that_only_some_runs_reach_is_not_reached_eventually():
    path = refuted({"s": {A: "goal", B: "t"}})
    assert path.states == ("s", "t")


def test_the_first_state_may_be_the_goal():
    assert refuted({}, starts=("goal",)) is None


def test_every_initial_state_counts():
    path = refuted({"u": {A: "end"}}, starts=("goal", "u"))
    assert path.initial == "u"


def test_an_unfair_circle_is_no_execution():
    """p could leave at any time and is never let: weak fairness forbids it."""
    assert refuted({"s": {A: "goal", B: "t"}, "t": {A: "goal", C: "s"}}) is None
    assert refuted({"s": {A: "goal", B: "s"}}) is None


def test_a_fair_circle_is_one():
    """p can leave in one of the two states only: it is not possible for ever."""
    path = refuted({"s": {A: "goal", B: "t"}, "t": {C: "s"}})
    assert path.loop == 0
    assert path.actions == (B, C)
    path = refuted({"s": {A: "t"}, "t": {B: "t"}})
    assert (path.loop, path.actions) == (1, (A, B))


def test_one_class_of_actions_is_owed_one_step_together():
    """q goes round with one action though its other one leads out: the class is not starved."""
    path = refuted({"s": {B: "goal", C: "s"}})
    assert path.actions == (C,)
    assert refuted({"s": {B: "goal", C: "s"}}, goal(fair=lambda action: action)) is None


def test_without_a_promise_an_action_may_never_happen():
    path = refuted({"s": {A: "goal"}}, goal(fair=lambda action: None))
    assert len(path) == 0
    path = refuted({"s": {A: "goal", B: "s"}}, goal(fair=lambda a: None if a == A else "q"))
    assert path.loop == 0


def test_a_class_may_be_called_anything_but_none():
    """Regression: 0, as of the first process, was treated as no fairness class."""
    for name in (0, "", False, ()):
        assert refuted({"s": {A: "goal"}}, goal(fair=lambda action, name=name: name)) is None


def test_rare_actions_do_not_go_on_for_ever():
    table = {"s": {B: "s", A: "t"}, "t": {A: "goal"}}
    assert refuted(table) is None
    crash = ("fault", "crash")
    table = {"s": {A: "t"}, "t": {crash: "s", B: "u"}, "u": {A: "goal"}}
    assert refuted(table, goal(rare=lambda action: action == crash)) is None
    table = {"s": {A: "t"}, "t": {crash: "s"}}  # it may stop in t: nobody is owed a crash
    none = goal(fair=lambda a: None if a == crash else a[0], rare=lambda a: a == crash)
    assert refuted(table, none).states == ("s", "t")


def test_a_circle_through_a_rare_action_is_none():
    crash = ("fault", "crash")
    table = {"s": {A: "t"}, "t": {crash: "s", B: "goal"}}
    frequent = goal(fair=lambda a: None if a == crash else a[0])
    assert refuted(table, frequent).loop == 0
    rare = goal(fair=frequent.fairness, rare=lambda a: a == crash)
    assert refuted(table, rare) is None


def test_a_rare_action_may_lead_to_where_the_goal_is_never_reached():
    crash = ("fault", "crash")
    path = refuted(
        {"s": {A: "goal", crash: "broken"}},
        goal(fair=lambda a: None if a == crash else a[0], rare=lambda a: a == crash),
    )
    assert path.actions == (crash,)


def test_the_round_trip_goes_through_every_step_of_the_circle():
    """So that it is fair as it is written down."""
    table = {
        "s": {A: "t"},
        "t": {B: "u", A: "v"},
        "u": {C: "t"},
        "v": {A: "t", B: "w"},
        "w": {A: "v"},
    }
    path = refuted(table)
    assert path.loop == 1
    inside = {
        (before, action)
        for before, action in zip(path.states, path.actions, strict=False)
        if before != "s"
    }
    assert inside == {(s, a) for s, steps in table.items() if s != "s" for a in steps}


def test_two_circles_one_of_which_is_fair():
    """The first circle can be left by p all the time; the second is for ever."""
    table = {
        "s": {A: "t", B: "s"},
        "t": {B: "u"},
        "u": {C: "t"},
    }
    path = refuted(table)
    assert path.states[path.loop] == "t"


@pytest.mark.parametrize("length", [2, 5, 500])
def test_long_circles(length):
    table = {i: {A: (i + 1) % length} for i in range(length)}
    path = refuted(table, starts=(0,))
    assert (path.loop, len(path)) == (0, length)


def test_a_search_that_was_cut_refutes_only_by_what_it_saw():
    table = {i: {A: i + 1} for i in range(50)}
    claim = goal()
    found = check_model(Table(table, starts=(0,)), [claim], max_states=10)
    assert found.verdict(claim) == "not refuted: the search was not exhaustive"
    found = check_model(Table({**table, 0: {A: 0}}, starts=(0, 3)), [claim], max_states=10)
    assert found.verdict(claim) == "does not hold: there is a counterexample"


@pytest.mark.parametrize("search", ["breadth", "depth"])
def test_peterson_like_turns(search):
    """Two processes that hand a token on: each gets it again and again, and both must move."""
    table = {
        ("has", 0): {("p", "work"): ("has", 0), ("p", "pass"): ("has", 1)},
        ("has", 1): {("q", "pass"): ("has", 0)},
    }
    claim = eventually("q has it", lambda s: s == ("has", 1), fair=lambda action: action)
    assert check_model(Table(table, starts=(("has", 0),)), [claim], search=search).holds
    weak = eventually("q has it", lambda s: s == ("has", 1), fair=lambda action: action[0])
    path = (
        check_model(Table(table, starts=(("has", 0),)), [weak], search=search)
        .discoveries["q has it"]
        .path
    )
    assert path.actions == (("p", "work"),)


def test_where_the_search_did_not_look_on_an_execution_does_not_stop():
    claim = goal()
    table = {"s": {A: "t"}, "t": {A: "u"}, "u": {A: "goal"}}
    found = check_model(Table(table), [claim], max_depth=1)
    assert found.verdict(claim) == "not refuted: the search was not exhaustive"
    assert check_model(Table(table), [claim]).verdict(claim) == "holds"


def test_a_state_takes_at_most_a_kilobyte():
    """Counted, not timed: all that is allocated at the worst moment, the states included."""
    grid = Grid(100, 100)
    at_the_end = eventually("the end", lambda place: place == (99, 99), fair=str)
    gc.collect()
    tracemalloc.start()
    try:
        found = check_model(grid, [at_the_end])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (found.unique_states, found.discoveries) == (10_000, {})
    assert most / found.unique_states <= 1_024
