"""Inclusion of what models show, modulo stuttering."""

import pytest

from cutwater.checking.explorer.inclusion import shown_only_by


class Graph:
    """States with the letter they show first, and where each leads."""

    def __init__(self, start, **edges):
        self.start, self.edges = start, edges

    def initial_states(self):
        return [self.start]

    def actions(self, state):
        return self.edges.get(state, [])

    def step(self, state, action):
        return action

    def observation(self, state):
        return state[0]


ABC = Graph("a", a=["b"], b=["c"])


@pytest.mark.parametrize(
    ("model", "other"),
    [
        (ABC, ABC),
        (Graph("a", a=["b"]), ABC),
        # steps that show nothing, on either side, and for ever
        (Graph("a", a=["a2"], a2=["a", "b"], b=["c"]), ABC),
        (ABC, Graph("a", a=["a2"], a2=["b"], b=["b2"], b2=["b", "c"])),
        # one of two branches
        (ABC, Graph("a", a=["b1", "b2"], b1=["d"], b2=["c"])),
    ],
)
def test_what_is_included(model, other):
    path, found = shown_only_by(model, other)
    assert path is None
    assert found.is_exhaustive


@pytest.mark.parametrize(
    ("model", "other", "run"),
    [
        (ABC, Graph("b", b=["c"]), ()),
        (ABC, Graph("a", a=["b"]), ("b", "c")),
        # the other shows more in between
        (Graph("a", a=["c"]), ABC, ("c",)),
        # each step alone can be shown, the sequence cannot
        (ABC, Graph("a", a=["b", "b2"], b=["d"], b2=["b2"], c=["c"]), ("b", "c")),
        (Graph("a", a=["b"], b=["a"]), ABC, ("b", "a")),
    ],
)
def test_what_is_not_included_is_shown_by_a_run(model, other, run):
    path, _ = shown_only_by(model, other)
    assert path.actions == run
