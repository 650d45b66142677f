"""Which actions are enough, as far as independence alone tells."""

import pytest

from cutwater.checking import always, check_model, sometimes
from cutwater.checking.explorer.reduction import (
    LOOKAHEAD,
    ample_by,
    can_reduce,
    can_sleep,
    is_acyclic,
)


class Counters:
    """Some counters, each with an action of its own; an observer sees one of them."""

    def __init__(self, count, most, seen=0):
        self.count, self.most, self.seen = count, most, seen

    def initial_states(self):
        return [(0,) * self.count]

    def actions(self, state):
        return [i for i in range(self.count) if state[i] < self.most]

    def step(self, state, i):
        return (*state[:i], state[i] + 1, *state[i + 1 :])

    def observation(self, state):
        return state[self.seen]

    def independent(self, a, b):
        return a != b


def test_what_a_model_must_say_to_be_reduced():
    assert can_reduce(Counters(2, 1))
    for name in ("observation", "independent"):

        class Silent(Counters):
            pass

        setattr(Silent, name, property())
        assert not can_reduce(Silent(2, 1))
        assert check_model(Silent(2, 1)).unique_states == 4


def test_a_claim_about_a_model_counts_for_the_class_that_makes_it():
    class Other(Counters):
        def step(self, state, i):
            return super().step(state, 0)

    class Again(Other):
        def independent(self, a, b):
            return False

    class Silent(Counters):
        is_reducible = False

    class Named(Counters):
        def name(self):
            return "counters"

    assert not can_reduce(Other(2, 1))
    assert can_reduce(Again(2, 1))
    assert not can_reduce(Silent(2, 1))
    assert can_reduce(Named(2, 1))
    replaced = Counters(2, 1)
    replaced.step = lambda state, i: state
    assert not can_reduce(replaced)


class Helping(Counters):
    """Its steps are made of helpers, as people write models."""

    is_acyclic = True
    weight = 1

    @property
    def limit(self):
        return self.most

    @classmethod
    def up(cls, number):
        return number + 1

    def effect(self, state, i):
        return (*state[:i], self.up(state[i]), *state[i + 1 :])

    def may(self, state, i):
        return state[i] < self.limit

    def actions(self, state):
        return [i for i in range(self.count) if self.may(state, i)]

    def step(self, state, i):
        return self.effect(self.prepared(state), i)

    def prepared(self, state):
        return state

    def independent(self, a, b):
        return a != b


OVERRIDDEN = {
    "effect": lambda self, state, i: (2,) * self.count,
    "may": lambda self, state, i: not any(state),
    "limit": property(lambda self: 2),
    "up": classmethod(lambda cls, number: number + 2),
    "actions": lambda self, state: [0],
    "step": lambda self, state, i: state,
    "initial_states": lambda self: [(1, 1)],
    "__getattribute__": lambda self, name: object.__getattribute__(self, name),
}


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_a_class_that_overrides_any_method_makes_no_claim(name):
    """Regression: a variant that overrode a helper of `step` lost a state to the reduction."""
    variant = type("Variant", (Helping,), {name: OVERRIDDEN[name]})(2, 1)
    mixed = type("Mixed", (type("Mixin", (), {name: OVERRIDDEN[name]}), Helping), {})(2, 1)
    for model in (variant, mixed):
        assert not can_reduce(model)
        assert not can_sleep(model)
        assert not is_acyclic(model)


def test_a_helper_that_only_a_subclass_has_is_part_of_the_claim():
    class Template(Counters):
        def step(self, state, i):
            return self.effect(state, i)

        def independent(self, a, b):
            return a != b

    class Variant(Template):
        def effect(self, state, i):
            return (1,) * self.count

    assert not can_sleep(Variant(2, 1))


def test_what_is_not_part_of_the_claim_may_be_overridden():
    class Variant(Helping):
        weight = 3

        def __init__(self, count, most):
            super().__init__(count, most, seen=1)

        def name(self):
            return "other"

        def observation(self, state):
            return sum(state)

    assert can_reduce(Variant(2, 1))
    assert can_sleep(Variant(2, 1))
    assert is_acyclic(Variant(2, 1))


def test_a_claim_set_in_the_object_is_of_no_class_that_overrides():
    class Claiming(Counters):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.is_acyclic = True

    class Variant(Claiming):
        def step(self, state, i):
            return state

    assert is_acyclic(Claiming(2, 1))
    assert not is_acyclic(Variant(2, 1))


def test_all_states_of_a_variant_are_found():
    class Variant(Helping):
        def effect(self, state, i):
            after = 2 if i == 1 and state[0] == 1 else 1
            return (*state[:i], after, *state[i + 1 :])

    claim = sometimes("the order is seen", lambda state: state == (1, 2))
    assert "the order is seen" in check_model(Variant(2, 1), [claim]).discoveries
    assert check_model(Variant(2, 1)).unique_states == 5


def test_sets_of_a_model_count_for_all_it_does():
    class Knowing(Counters):
        is_acyclic = True

        def ample(self, state, actions):
            return actions[-1:]

    class Seen(Knowing):
        def observation(self, state):
            return state

    class Moved(Knowing):
        def actions(self, state):
            return [0]

    assert ample_by(Knowing(3, 1))((0, 0, 0), [0, 1]) == [1]
    assert ample_by(Seen(3, 1))((0, 0, 0), [0, 1]) is None
    assert is_acyclic(Knowing(2, 1))
    assert is_acyclic(Seen(2, 1))
    assert not is_acyclic(Moved(2, 1))
    assert not is_acyclic(Counters(2, 1))


def test_an_action_that_shows_something_once_another_was_taken_is_not_enough():
    class Both(Counters):
        def observation(self, state):
            return state[0] > 0 and state[1] > 0

    assert ample_by(Both(3, 1))((0, 0, 0), [0, 1, 2]) == [2]
    assert ample_by(Both(2, 1))((0, 0), [0, 1]) is None


def test_an_action_that_nobody_sees_and_nothing_disturbs_is_enough():
    model = Counters(3, 2)
    assert ample_by(model)((0, 0, 0), [0, 1, 2]) == [1]
    assert ample_by(model)((0, 2, 0), [0, 2]) == [2]


def test_what_is_seen_is_never_enough():
    model = Counters(2, 1, seen=1)
    assert ample_by(model)((0, 0), [0, 1]) == [0]
    assert ample_by(Counters(2, 1))((0, 1), [0]) is None


def test_actions_that_depend_on_each_other_stay_together():
    class Tied(Counters):
        def independent(self, a, b):
            return a != b and {a, b} != {1, 2} and {a, b} != {2, 3}

    assert ample_by(Tied(5, 1))((0, 0, 0, 1, 1), [0, 1, 2]) == [1, 2]
    assert ample_by(Tied(4, 1))((0, 0, 0, 0), [0, 1, 2, 3]) == [1, 2, 3]


def test_an_action_that_another_may_come_to_disturb_is_not_enough():
    """Action 2 becomes possible after 0, and depends on 1."""

    class Late(Counters):
        def actions(self, state):
            return [i for i in super().actions(state) if i != 2 or state[0]]

        def independent(self, a, b):
            return a != b and {a, b} != {1, 2}

    assert ample_by(Late(3, 1))((0, 0, 0), [0, 1]) is None


def test_looking_ahead_is_bounded():
    """Beyond the bound the state is not reduced, and nothing is lost but time."""

    class Counted(Counters):
        looked = 0

        def actions(self, state):
            self.looked += 1
            return super().actions(state)

    far = Counted(2, 10 * LOOKAHEAD)
    assert ample_by(far)((0, 0), [0, 1]) is None
    assert far.looked < 2 * LOOKAHEAD + 5
    near = Counted(2, LOOKAHEAD // 2)
    assert ample_by(near)((0, 0), [0, 1]) == [1]


def test_where_states_recur_nothing_is_put_off_for_ever():
    """An unseen action that goes round must not hide the one that is seen."""

    class Spinning:
        def initial_states(self):
            return [(0, 0)]

        def actions(self, state):
            return ["spin", *(["show"] if not state[1] else [])]

        def step(self, state, action):
            spun, shown = state
            return ((spun + 1) % 3, shown) if action == "spin" else (spun, 1)

        def observation(self, state):
            return state[1]

        def independent(self, a, b):
            return a != b

    claim = always("nothing is shown", lambda shown: not shown, observed=True)
    found = check_model(Spinning(), [claim])
    assert found.is_reduced
    assert found.discoveries["nothing is shown"].path.actions == ("show",)
