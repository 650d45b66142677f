"""Searching a model: what is counted, found and reported, and how a search ends."""

import pytest

from cutwater.checking import SearchProgress, always, check_model, eventually, sometimes
from cutwater.errors import InputError


class Counting:
    """0, 1, 2, …; from each number to the next and to its double."""

    def __init__(self, most):
        self.most = most

    def initial_states(self):
        return [1]

    def actions(self, state):
        return [name for name, there in (("add", state + 1), ("double", state * 2))
                if there <= self.most]  # fmt: skip

    def step(self, state, action):
        return state + 1 if action == "add" else state * 2


def test_every_state_is_counted_once_and_every_step_always():
    found = check_model(Counting(10))
    assert (found.unique_states, found.transitions) == (10, 9 + 5)
    assert (found.is_exhaustive, found.stopped, found.holds) == (True, "", True)
    assert found.depth == 4  # 1 2 4 5 and one more


def test_a_state_that_is_initial_twice_is_one_state():
    class Twice(Counting):
        def initial_states(self):
            return [1, 1, 2]

    assert check_model(Twice(3)).unique_states == 3


def test_breadth_finds_a_shortest_counterexample():
    claim = always("below 10", lambda state: state < 10)
    path = check_model(Counting(10), [claim]).discoveries["below 10"].path
    assert path.actions == ("add", "double", "add", "double")
    assert path.states == (1, 2, 4, 5, 10)
    assert len(path) == 4


@pytest.mark.parametrize("search", ["depth", "random"])
def test_other_searches_find_one_from_which_nothing_can_be_left_out(search):
    claim = always("not 7", lambda state: state != 7)
    path = check_model(Counting(40), [claim], search=search).discoveries["not 7"].path
    assert path.last == 7
    model = Counting(40)
    for i in range(len(path)):
        here = 1
        for action in (*path.actions[:i], *path.actions[i + 1 :]):
            here = model.step(here, action)
        assert here != 7


def test_a_counterexample_in_the_first_state_has_no_actions():
    claim = always("never", lambda state: False)
    found = check_model(Counting(5), [claim])
    assert len(found.discoveries["never"].path) == 0
    assert found.discoveries["never"].is_counterexample


def test_a_search_stops_once_every_claim_is_settled_and_not_before():
    claims = [always("below 3", lambda s: s < 3), always("below 5", lambda s: s < 5)]
    found = check_model(Counting(100), claims)
    assert found.stopped == "at the first counterexample"
    assert not found.is_exhaustive
    assert set(found.discoveries) == {"below 3", "below 5"}
    assert found.unique_states < 10
    assert found.summary() == (
        f"stopped after {found.unique_states} states, at the first counterexample"
    )
    whole = check_model(Counting(100), claims, stop_early=False)
    assert (whole.unique_states, whole.is_exhaustive) == (100, True)
    assert whole.discoveries["below 3"].path == found.discoveries["below 3"].path
    third = always("positive", lambda s: s > 0)
    assert check_model(Counting(100), [*claims, third]).unique_states == 100


def test_what_is_sometimes_true_is_shown_by_an_example():
    claims = [sometimes("5", lambda s: s == 5), sometimes("500", lambda s: s == 500)]
    found = check_model(Counting(10), claims)
    assert not found.discoveries["5"].is_counterexample
    assert [found.verdict(claim) for claim in claims] == [
        "holds: there is an example",
        "does not hold",
    ]
    assert (found.holds, found.is_refuted(claims[0]), found.is_refuted(claims[1])) == (
        False,
        False,
        True,
    )


def test_a_search_that_found_its_example_does_not_speak_of_a_counterexample():
    found = check_model(Counting(50), [sometimes("5", lambda s: s == 5)])
    assert found.holds
    assert (
        found.summary()
        == f"stopped after {found.unique_states} states, once every claim was settled"
    )


def test_a_bound_of_states_is_reported():
    claim = always("below 20", lambda s: s < 20)
    found = check_model(Counting(100), [claim], max_states=7)
    assert (found.unique_states, found.is_exhaustive) == (7, False)
    assert found.summary() == "stopped at the bound after 7 states: not exhaustive"
    assert found.verdict(claim) == "not refuted: the search was not exhaustive"
    assert found.holds
    assert check_model(
        Counting(7), max_states=7
    ).is_exhaustive  # a bound that is not met is no bound


def test_what_is_sometimes_true_is_not_refuted_by_a_search_that_was_cut():
    claim = sometimes("99", lambda s: s == 99)
    found = check_model(Counting(100), [claim], max_states=5)
    assert not found.is_refuted(claim)
    assert found.verdict(claim) == "not refuted: the search was not exhaustive"


@pytest.mark.parametrize("search", ["breadth", "depth"])
def test_a_bound_of_depth_is_reported(search):
    found = check_model(Counting(100), max_depth=3, search=search)
    assert found.summary().startswith("stopped at the bound after")
    assert found.depth == 3
    assert check_model(Counting(3), max_depth=2, search=search).is_exhaustive


def test_a_state_at_the_bound_of_depth_is_still_looked_at():
    claim = always("not 8", lambda s: s != 8)
    assert check_model(Counting(100), [claim], max_depth=3).discoveries
    assert not check_model(Counting(100), [claim], max_depth=2).discoveries


def test_large_numbers_are_grouped():
    assert check_model(Counting(1234)).summary() == "explored all 1,234 states"


class Interrupted(Counting):
    """Somebody presses Ctrl-C when the search comes to 9."""

    def actions(self, state):
        if state == 9:
            raise KeyboardInterrupt
        return super().actions(state)


@pytest.mark.parametrize("search", ["breadth", "depth", "random"])
def test_an_interruption_keeps_what_was_found(search):
    claims = [always("not 2", lambda s: s != 2), always("positive", lambda s: s > 0)]
    found = check_model(Interrupted(50), claims, search=search)
    assert found.stopped == "interrupted"
    assert not found.is_exhaustive
    assert found.summary() == f"interrupted after {found.unique_states} states: not exhaustive"
    assert found.discoveries["not 2"].path.last == 2
    assert found.verdict(claims[1]) == "not refuted: the search was not exhaustive"


def test_an_interrupted_search_claims_nothing_of_what_happens_eventually():
    claim = eventually("100", lambda s: s == 100, fair=lambda action: action)
    found = check_model(Interrupted(50), [claim])
    assert found.verdict(claim) == "not refuted: the search was not exhaustive"


def test_an_error_in_a_model_is_the_callers():
    class Wrong(Counting):
        def step(self, state, action):
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        check_model(Wrong(5))


def test_the_same_seed_walks_the_same_way():
    claim = always("not 31", lambda s: s != 31)
    one, same = (check_model(Counting(500), [claim], search="random", seed=3) for _ in range(2))
    assert one == same
    assert one.discoveries["not 31"].seed == 3
    counts = {
        check_model(Counting(500), search="random", walks=2, seed=seed).unique_states
        for seed in range(10)
    }
    assert len(counts) > 1


def test_walks_are_never_exhaustive():
    found = check_model(Counting(3), search="random", walks=50)
    assert found.unique_states == 3
    assert not found.is_exhaustive
    assert found.summary() == "stopped at the bound after 3 states: not exhaustive"


def test_the_last_state_of_a_walk_is_looked_at():
    """Regression: with a bound of one step only the first state was."""
    claim = always("not 2", lambda s: s != 2)
    found = check_model(Counting(10), [claim], search="random", max_depth=1, walks=1)
    assert found.discoveries["not 2"].path.actions


class Circle:
    """0, 1, 2 and 0 again, for ever."""

    def initial_states(self):
        return [0]

    def actions(self, state):
        return ["next"]

    def step(self, state, action):
        return (state + 1) % 3


def test_walks_end_where_a_model_goes_round_for_ever():
    """Regression: a walk without a bound did not end in a model that goes on for ever."""
    found = check_model(Circle(), [always("small", lambda s: s < 3)], search="random", walks=2)
    assert found.unique_states == 3
    assert found.holds


def test_an_unknown_search_is_refused():
    with pytest.raises(InputError, match=r"\[unknown-search\] there is no search 'best'"):
        check_model(Counting(3), search="best")


def test_progress_is_reported():
    reports = []
    found = check_model(Counting(20_000), progress=reports.append)
    assert 5 < len(reports) < found.transitions / 1_000
    assert all(isinstance(report, SearchProgress) for report in reports)
    states = [report.unique_states for report in reports]
    assert states == sorted(states)
    assert reports[-1].depth > 1


def test_nobody_has_to_listen_to_progress():
    heard = check_model(Counting(20_000), progress=lambda _: None)
    assert check_model(Counting(20_000)) == heard


def test_claims_may_be_of_what_is_observed():
    class Shown(Counting):
        def observation(self, state):
            return state % 2

    claim = always("even", lambda parity: parity == 0, observed=True)
    assert check_model(Shown(5), [claim]).discoveries["even"].path.last == 1
