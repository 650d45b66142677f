"""Explainability and its lemmas (P1, section 5), on all executions of small random models."""

import random
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.checking.random_systems import seeds

from cutwater.checking import (
    explainable,
    failure_transparency,
    is_explained,
    is_monotonically_explained,
    monotonicity,
    view,
    without,
)
from cutwater.errors import InputError


class Shown:
    """A model written down: for each state what is observed, and the states that may follow."""

    def __init__(self, observed, edges, starts=(0,)):
        self.observed, self.edges, self.starts = observed, edges, starts

    def initial_states(self):
        return self.starts

    def actions(self, state):
        return list(self.edges.get(state, ()))

    def step(self, state, action):
        return action

    def observation(self, state):
        return self.observed[state]

    def executions(self):
        """The observations of every execution, prefixes included (Definition 5.2)."""
        todo = [(start,) for start in self.starts]
        while todo:
            states = todo.pop()
            yield [self.observed[state] for state in states]
            todo += [(*states, there) for there in self.actions(states[-1])]


def drawn_model(drawn, *, is_monotone, most=6, values=3):
    """An acyclic model; if monotone, what is observed grows along every edge."""
    count = drawn.randint(1, most)
    if is_monotone:
        observed = sorted(drawn.randrange(values) for _ in range(count))
        observed[0] = 0
    else:
        observed = [0, *(drawn.randrange(values) for _ in range(count - 1))]
    edges = {i: [j for j in range(i + 1, count) if drawn.random() < 0.5] for i in range(count - 1)}
    return Shown(observed, edges)


def is_explainable(model, other, explains):
    """Definition 5.5, word by word."""
    explaining = list(other.executions())
    return all(any(explains(seen, e) for e in explaining) for seen in model.executions())


@given(seeds, st.booleans())
def test_definition_5_5_with_5_6_is_what_is_checked(seed, is_monotone):
    drawn = random.Random(seed)
    model, other = (drawn_model(drawn, is_monotone=is_monotone) for _ in range(2))
    expected = is_explainable(model, other, is_monotonically_explained)
    assert explainable(model, other).holds == expected


@given(seeds)
def test_a_counterexample_is_a_run_that_nothing_explains(seed):
    drawn = random.Random(seed)
    model, other = (drawn_model(drawn, is_monotone=False) for _ in range(2))
    path = explainable(model, other).counterexample
    if path is None:
        return
    for states in (path.states, path.states[:-1]):
        seen = [model.observed[state] for state in states]
        explained = any(is_monotonically_explained(seen, e) for e in other.executions())
        assert explained == (states != path.states)  # shortest: all but its end is explained


@given(seeds)
def test_an_order_that_is_known_changes_no_verdict(seed):
    drawn = random.Random(seed)
    model, other = (drawn_model(drawn, is_monotone=True) for _ in range(2))
    found = explainable(model, other, order=lambda a, b: a <= b)
    assert found.holds == explainable(model, other).holds


@given(seeds)
def test_lemma_5_7_an_explanation_of_what_grows_is_monotone(seed):
    """With the same order on both sides."""
    drawn = random.Random(seed)
    model, other = (drawn_model(drawn, is_monotone=True) for _ in range(2))
    loosely = is_explainable(model, other, is_explained)
    assert explainable(model, other).holds == loosely


def test_lemma_5_7_needs_the_same_order_on_both_sides():
    """One shows a, then b; the other b, then a: each is monotone in an order of its own."""
    model, other = Shown("ab", {0: [1]}), Shown("ba", {0: [1]})
    assert is_explained("ab", "ba")
    assert not is_monotonically_explained("ab", "ba")
    assert monotonicity(model, model.observation, order=lambda x, y: x <= y).holds
    assert monotonicity(other, other.observation, order=lambda x, y: x >= y).holds
    assert is_explainable(model, other, is_explained)
    found = explainable(model, other)
    assert not found.holds
    assert found.counterexample.actions == (1,)


def drawn_translation(drawn, other, model):
    """Pairs of states that may begin alike: c' T c."""
    count = drawn.randint(1, 3)
    pairs = [(drawn.randrange(len(other.observed)), drawn.randrange(len(model.observed)))
             for _ in range(count)]  # fmt: skip
    return [(a, b) for a, b in pairs if other.observed[a] <= model.observed[b]] or [(0, 0)]


def composed(translation, further):
    """T ∘ T': c'' and c, where some c' has c'' T' c' and c' T c."""
    return [(a, c) for a, b in further for d, c in translation if b == d]


@given(seeds)
def test_lemma_5_8_transitivity_under_composed_translations(seed):
    drawn = random.Random(seed)
    first, second, third = (
        drawn_model(drawn, is_monotone=True, most=4, values=2) for _ in range(3)
    )
    t, t_ = drawn_translation(drawn, second, first), drawn_translation(drawn, third, second)
    assume(composed(t, t_))
    assume(explainable(first, second, translation=t).holds)
    assume(explainable(second, third, translation=t_).holds)
    assert explainable(first, third, translation=composed(t, t_)).holds


def test_lemma_5_8_needs_the_translations_composed():
    """From other states than the composed ones the conclusion does not follow."""
    first, second, third = Shown("b", {}), Shown("ab", {0: [1]}), Shown("xab", {1: [2]})
    t, t_ = [(0, 0)], [(1, 0)]
    assert explainable(first, second, translation=t).holds
    assert explainable(second, third, translation=t_).holds
    assert explainable(first, third, translation=composed(t, t_)).holds
    assert not explainable(first, third, translation=[(0, 0)]).holds


@given(seeds, st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_lemma_5_9_composition(seed, table):
    """What is explainable stays so through any function of what is observed."""
    drawn = random.Random(seed)
    model, other = (drawn_model(drawn, is_monotone=True) for _ in range(2))
    assume(explainable(model, other).holds)
    composed = explainable(
        model,
        other,
        observe=view(model, table.__getitem__),
        observe_other=view(other, table.__getitem__),
    )
    assert composed.holds


def test_lemma_5_9_a_composed_observability_function_may_stop_being_monotone():
    model = Shown([0, 1, 2], {0: [1], 1: [2]})
    assert monotonicity(model, model.observation).holds
    parity = view(model, lambda n: n % 2)
    found = monotonicity(model, parity)
    assert not found.holds
    assert [parity(state) for state in found.counterexample.states] == [0, 1, 0]
    assert explainable(model, model, observe=parity, observe_other=parity).holds  # all the same


def test_each_observation_alone_is_explainable_and_the_sequence_is_not():
    """The other model shows 1 or 2, never both: one execution has to explain the whole run."""
    model = Shown([0, 1, 2], {0: [1], 1: [2]})
    other = Shown([0, 1, 2], {0: [1, 2]})
    shown = {o for execution in other.executions() for o in execution}
    assert all(observation in shown for observation in model.observed)
    for prefix in ([0], [0, 1], [0, 2]):
        assert any(is_explained(prefix, e) for e in other.executions())
    found = explainable(model, other)
    assert not found.holds
    assert found.counterexample.states == (0, 1, 2)


def test_between_two_observations_the_other_model_may_show_more():
    model, other = Shown([0, 2], {0: [1]}), Shown([0, 1, 2], {0: [1], 1: [2]})
    assert explainable(model, other).holds
    assert not explainable(other, model).holds


def test_the_first_observation_counts():
    assert not explainable(Shown([1], {}), Shown([0], {})).holds
    assert explainable(Shown([1], {}), Shown([0, 1], {0: [1]})).holds


@given(seeds)
def test_every_model_explains_itself(seed):
    model = drawn_model(random.Random(seed), is_monotone=False)
    assert explainable(model, model).holds


@pytest.mark.parametrize("is_right", [True, False])
def test_a_translation_says_where_runs_begin(is_right):
    model, other = Shown("ab", {0: [1]}), Shown("xab", {1: [2]})
    pairs = [(1, 0)] if is_right else [(2, 0)]
    assert explainable(model, other, translation=pairs).holds == is_right
    assert not explainable(model, other).holds
    assert explainable(model, other, translation=[(1, 0), (2, 1)]).holds
    assert not explainable(model, other, translation=[(1, 0), (0, 1)]).holds


def test_no_translation_asks_for_nothing():
    """An empty relation has no executions to explain (regression: it was the default)."""
    assert explainable(Shown("a", {}), Shown("b", {}), translation=[]).holds


def test_models_with_cycles():
    ring = Shown("ab", {0: [1], 1: [0]})
    line = Shown("aba", {0: [1], 1: [2]})
    assert explainable(line, ring).holds
    assert explainable(ring, ring).holds
    found = explainable(ring, line)
    assert not found.holds
    assert len(found.counterexample) == 3  # a b a b


def steps_of(model):
    """All reachable steps on which the observation changes, as pairs of observations."""
    todo, known = list(model.starts), set(model.starts)
    pairs = set()
    while todo:
        state = todo.pop()
        for there in model.actions(state):
            pairs.add((model.observed[state], model.observed[there]))
            if there not in known:
                known.add(there)
                todo.append(there)
    return {(a, b) for a, b in pairs if a != b}


def closed(pairs):
    """The transitive closure."""
    while True:
        more = pairs | {(a, d) for a, b in pairs for c, d in pairs if b == c}
        if more == pairs:
            return pairs
        pairs = more


@given(seeds)
def test_definition_5_3_some_partial_order_is_acyclicity_over_all_steps(seed):
    model = drawn_model(random.Random(seed), is_monotone=False, values=4)
    found = monotonicity(model, model.observation)
    assert found.holds == all(a != b for a, b in closed(steps_of(model)))
    seen = [[model.observed[s] for s in run.states[-2:]] for run in found.circle]
    for step, following in zip(seen, seen[1:] + seen[:1], strict=True):
        assert step[0] != step[1] == following[0]
    for run in found.circle:
        assert run.states[0] == 0
        assert all(b in model.actions(a) for a, b in zip(run.states, run.states[1:], strict=False))


def test_definition_5_3_two_branches_that_disagree():
    """Each run shows each observation once; no order is right for both."""
    model = Shown("sabba", {0: [1, 3], 1: [2], 3: [4]})
    found = monotonicity(model, model.observation)
    assert not found.holds
    assert [run.states for run in found.circle] == [(0, 1, 2), (0, 3, 4)]
    assert found.counterexample.states == (0, 3, 4)


NO_ORDERS = {
    "reflexivity": lambda a, b: a < b,
    "antisymmetry": lambda a, b: True,
    "transitivity": lambda a, b: a == b or b == a + 1,
}


@pytest.mark.parametrize("rule", NO_ORDERS)
def test_an_order_that_is_none_is_refused(rule):
    model = Shown([0, 1, 2], {0: [1], 1: [2]})
    failure_free = without(model, lambda action: False)
    for ask in (
        lambda order: monotonicity(model, model.observation, order=order),
        lambda order: explainable(model, model, order=order),
        lambda order: failure_transparency(model, failure_free, order=order),
    ):
        with pytest.raises(InputError, match=rule) as raised:
            ask(NO_ORDERS[rule])
        assert raised.value.problems[0].code == "no-order"
        assert ask(lambda a, b: a <= b).holds


@given(seeds)
def test_definition_5_3_monotone_in_an_order(seed):
    model = drawn_model(random.Random(seed), is_monotone=False)
    found = monotonicity(model, model.observation, order=lambda a, b: a <= b)
    assert found.holds == all(seen == sorted(seen) for seen in model.executions())


class Lossy:
    """Sends numbers in order; where `is_safe` is not set, a failure skips one."""

    def __init__(self, is_safe):
        self.is_safe = is_safe

    def initial_states(self):
        return [((), 0)]

    def actions(self, state):
        _, at = state
        return ["send", "fail"] if at < 3 else []

    def step(self, state, action):
        sent, at = state
        if action == "send":
            return (*sent, at), at + 1
        return (sent, at + 1) if not self.is_safe else state

    def observation(self, state):
        return state[0]


@pytest.mark.parametrize("is_safe", [True, False])
def test_definition_5_10_with_the_failures_of_any_model_taken_out(is_safe):
    model = Lossy(is_safe)
    failure_free = without(model, lambda action: action == "fail")
    assert failure_free.actions(((), 0)) == ["send"]
    found = failure_transparency(model, failure_free)
    assert found.holds == is_safe
    if not is_safe:
        assert found.counterexample.actions == ("fail", "send")
        assert found.counterexample.states[-1] == ((1,), 2)


class Retracts:
    """Shows a number and takes it back, with failures and without."""

    def initial_states(self):
        return [0]

    def actions(self, state):
        return ["go", "fail"] if state < 2 else []

    def step(self, state, action):
        return state + 1

    def observation(self, state):
        return state % 2


@pytest.mark.parametrize("order", [None, lambda a, b: a <= b])
def test_definition_5_10_asks_for_a_monotone_observability_function(order):
    """Every run is explained by the same one without failures; yet what is shown goes back."""
    model = Retracts()
    failure_free = without(model, lambda action: action == "fail")
    found = failure_transparency(model, failure_free, order=order)
    assert found.checked.holds or order
    assert not found.holds
    assert not found.monotone.holds
    if found.checked.holds:
        assert found.counterexample.states == (0, 1, 2)
    seen_once = failure_transparency(model, failure_free, observe=lambda state: state)
    assert seen_once.holds
    assert seen_once.monotone is None


def test_definition_5_4_and_5_6_by_hand():
    assert is_explained([], [])
    assert not is_explained(["a"], [])
    assert is_explained(["b", "a", "b"], ["a", "b"])
    assert is_monotonically_explained(["a", "a", "b", "b"], ["a", "b"])
    assert is_monotonically_explained(["a", "b", "a"], ["a", "b", "c", "a"])
    assert not is_monotonically_explained(["b", "a", "b"], ["a", "b"])
    for seen, explaining in product(["", "a", "ab", "aab"], repeat=2):
        if is_monotonically_explained(seen, explaining):
            assert is_explained(seen, explaining)
