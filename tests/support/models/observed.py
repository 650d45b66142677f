"""All that can be observed of a model: the sequences of its observations, without repetitions."""

from cutwater.checking.explorer.search import _Search


class _Walked(_Search):
    """A search that writes down which actions it looked at in each state."""

    def __init__(self, model, reduce):
        super().__init__(model, (), "breadth", None, None, 0, reduce, False, None)
        self.chosen = {}

    def _actions(self, state):
        self.chosen[state] = list(super()._actions(state))
        return self.chosen[state]


def graph(model, *, reduce):
    """State -> the states that a search goes on to."""
    search = _Walked(model, reduce)
    search.run(0)
    return {
        state: [model.step(state, action) for action in actions]
        for state, actions in search.chosen.items()
    }


def sequences(model, *, reduce, longest=6):
    """Every sequence of observations of a run, up to a length: closed under prefixes."""
    edges = graph(model, reduce=reduce)
    seen = {state: model.observation(state) for state in edges}
    todo = [(state, (seen[state],)) for state in dict.fromkeys(model.initial_states())]
    known = set(todo)
    while todo:
        state, shown = todo.pop()
        for there in edges[state]:
            longer = shown if seen[there] == shown[-1] else (*shown, seen[there])
            if len(longer) <= longest and (there, longer) not in known:
                known.add((there, longer))
                todo.append((there, longer))
    return {shown for _, shown in known}
