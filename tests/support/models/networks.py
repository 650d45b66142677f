"""Random networks of processes that share counters: toy models with cycles, waiting and races."""

from dataclasses import dataclass

MOST = 2
"""No counter goes above."""


@dataclass(frozen=True)
class Step:
    """One transition of a process: between two of its places, with an effect on a counter."""

    process: int
    before: int
    after: int
    effect: str
    """Empty for none, ``up`` (up to the most), ``down`` (not below 0), ``zero`` (if it is 0)."""
    counter: int


class Network:
    """The steps of all processes; an observer sees some counters and one process's place."""

    def __init__(self, drawn, *, is_acyclic):
        self.is_acyclic = is_acyclic
        self.processes = drawn.randint(2, 4)
        self.counters = drawn.randint(1, 3)
        places = drawn.randint(2, 4)
        self.steps = tuple(
            dict.fromkeys(
                self._step(drawn, process, places, is_first=not i)
                for process in range(self.processes)
                for i in range(drawn.randint(2, 5))
            )
        )
        self.seen = [i for i in range(self.counters) if drawn.random() < 0.5]
        self.watched = drawn.choice([None, 0])

    def _step(self, drawn, process, places, *, is_first):
        before = 0 if is_first else drawn.randrange(places - 1)
        after = drawn.randrange(before + 1 if self.is_acyclic else 0, places)
        effect = drawn.choice(["", "", "up", "up", "down", "zero"])
        return Step(process, before, after, effect, drawn.randrange(self.counters))

    def initial_states(self):
        return [((0,) * self.processes, (0,) * self.counters)]

    def actions(self, state):
        return [step for step in self.steps if self.is_possible(state, step)]

    def is_possible(self, state, step):
        places, counters = state
        count = counters[step.counter]
        is_free = {"": True, "up": count < MOST, "down": count > 0, "zero": count == 0}
        return places[step.process] == step.before and is_free[step.effect]

    def step(self, state, step):
        places, counters = map(list, state)
        places[step.process] = step.after
        counters[step.counter] += {"up": 1, "down": -1}.get(step.effect, 0)
        return tuple(places), tuple(counters)

    def observation(self, state):
        places, counters = state
        return tuple(counters[i] for i in self.seen), self.watched is not None and places[0]

    def independent(self, a, b):
        """Steps of two processes that do not touch the same counter, unless both only read it."""
        if a.process == b.process:
            return False
        is_shared = a.effect and b.effect and a.counter == b.counter
        return not is_shared or a.effect == b.effect == "zero"
