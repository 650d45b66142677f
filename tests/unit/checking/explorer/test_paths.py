"""Paths: replayed and shrunk."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.checking import Path, replay
from cutwater.checking.explorer.paths import shrink
from cutwater.errors import InputError


class EventCodec:
    """Appends letters, at most one z."""

    def initial_states(self):
        return [""]

    def actions(self, state):
        return iter("abz" if "z" not in state else "ab")

    def step(self, state, action):
        return state + action


def test_a_replay_has_all_states():
    path = replay(EventCodec(), "", "abz")
    assert path == Path("", ("a", "b", "z"), ("", "a", "ab", "abz"))
    assert (path.last, len(path), path.loop) == ("abz", 3, None)
    assert replay(EventCodec(), "x", ()) == Path("x", (), ("x",))


def test_an_impossible_action_is_named():
    with pytest.raises(InputError) as raised:
        replay(EventCodec(), "", ["a", "z", "b", "z", "a"])
    (problem,) = raised.value.problems
    assert problem.code == "path-does-not-replay"
    assert problem.message.startswith("action 3 of the path, 'z', is not possible")


@given(st.text("abz", max_size=40), st.text("ab", max_size=4))
def test_of_a_shrunk_path_no_action_can_be_left_out(letters, wanted):
    """Wanted letters in their order, anywhere."""
    model = EventCodec()

    def shows(path):
        rest = iter(path.last)
        return all(letter in rest for letter in wanted)

    possible = letters if letters.count("z") < 2 else letters.replace("z", "")
    path = replay(model, "", possible)
    if not shows(path):
        return
    shorter = shrink(model, path, shows)
    assert shorter.last == wanted
    assert replay(model, "", shorter.actions) == shorter


def test_shrinking_keeps_a_path_possible():
    """What makes a later action possible stays."""

    class Doors:
        """Each door opens the next."""

        def actions(self, state):
            return [0, *(n + 1 for n in state)]

        def step(self, state, action):
            return state | {action}

    drawn = random.Random(1)
    actions, state = [], frozenset()
    while 4 not in state:
        actions.append(drawn.choice(list(Doors().actions(state))))
        state = Doors().step(state, actions[-1])
    path = replay(Doors(), frozenset(), actions)
    shorter = shrink(Doors(), path, lambda found: 4 in found.last)
    assert shorter.actions == (0, 1, 2, 3, 4)


def test_what_cannot_be_shrunk_stays():
    path = replay(EventCodec(), "", "ab")
    assert shrink(EventCodec(), path, lambda found: found.last == "ab") == path
    empty = replay(EventCodec(), "", "")
    assert shrink(EventCodec(), empty, lambda found: True) == empty


def test_what_only_a_left_out_action_needed_is_left_out_too():
    """It stands before that action, so it takes a second look at single actions."""

    class Keys:
        """A key opens the chest; a song needs nothing."""

        def actions(self, state):
            return ["key", "song", *(["chest"] if "key" in state else [])]

        def step(self, state, action):
            return (*state, action)

    path = replay(Keys(), (), ("key", "song", "chest"))
    assert shrink(Keys(), path, lambda found: "song" in found.last).actions == ("song",)
