"""Models whose numbers of states are published, so that a search can be compared with others'."""

from itertools import product


class DieHard:
    """Two jugs of 3 and 5 litres (Lamport's DieHard.tla): 16 states."""

    def initial_states(self):
        return [(0, 0)]

    def actions(self, state):
        return ["fill small", "fill big", "empty small", "empty big", "to big", "to small"]

    def step(self, state, action):
        small, big = state
        match action:
            case "fill small":
                return 3, big
            case "fill big":
                return small, 5
            case "empty small":
                return 0, big
            case "empty big":
                return small, 0
            case "to big":
                poured = min(small, 5 - big)
                return small - poured, big + poured
            case _:
                poured = min(big, 3 - small)
                return small + poured, big - poured


class TransactionCommit:
    """Lamport's TCommit.tla: 34 states for three resource managers."""

    def __init__(self, count):
        self.count = count

    def initial_states(self):
        return [("working",) * self.count]

    def actions(self, state):
        can_commit = set(state) <= {"prepared", "committed"}
        for rm, known in enumerate(state):
            if known == "working":
                yield rm, "prepared"
            if known == "prepared" and can_commit:
                yield rm, "committed"
            if known in ("working", "prepared") and "committed" not in state:
                yield rm, "aborted"

    def step(self, state, action):
        rm, becomes = action
        return (*state[:rm], becomes, *state[rm + 1 :])


def is_consistent(state):
    """No resource manager has committed where another has aborted."""
    return not {"committed", "aborted"} <= set(state)


class TwoPhaseCommit:
    """Lamport's TwoPhase.tla: 288 states for three resource managers, 8,832 for five.

    A state: the managers' states, the coordinator's, whom it knows to be prepared, the messages.
    """

    def __init__(self, count):
        self.count = count

    def initial_states(self):
        return [(("working",) * self.count, "init", frozenset(), frozenset())]

    def actions(self, state):
        rms, tm, prepared, sent = state
        if tm == "init":
            if len(prepared) == self.count:
                yield "commit", None
            yield "abort", None
        for rm, known in enumerate(rms):
            if tm == "init" and rm in sent and rm not in prepared:
                yield "note prepared", rm
            if known == "working":
                yield "prepare", rm
                yield "choose to abort", rm
            for order, becomes in (("commit", "committed"), ("abort", "aborted")):
                if order in sent and known != becomes:
                    yield f"obey {order}", rm

    def step(self, state, action):
        rms, tm, prepared, sent = state
        name, rm = action
        match name:
            case "commit" | "abort":
                return rms, name, prepared, sent | {name}
            case "note prepared":
                return rms, tm, prepared | {rm}, sent
        becomes = {"prepare": "prepared", "obey commit": "committed"}.get(name, "aborted")
        after = (*rms[:rm], becomes, *rms[rm + 1 :])
        return after, tm, prepared, sent | {rm} if name == "prepare" else sent


class CommutingTwoPhaseCommit(TwoPhaseCommit):
    """The same model, which says what commutes: what two managers do, or one and the coordinator.

    Of the coordinator's own actions only notes of two managers do.
    """

    COORDINATORS = ("commit", "abort", "note prepared")

    def independent(self, one, other):
        (name, rm), (other_name, other_rm) = one, other
        own = [name in self.COORDINATORS, other_name in self.COORDINATORS]
        if all(own):
            return name == other_name == "note prepared" and rm != other_rm
        return any(own) or rm != other_rm


class SlidingPuzzle:
    """Half of all orders of the tiles: 360 for 2 by 3, 181,440 for 3 by 3."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns

    def initial_states(self):
        return [tuple(range(self.rows * self.columns))]

    def actions(self, state):
        row, column = divmod(state.index(0), self.columns)
        for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            if 0 <= row + down < self.rows and 0 <= column + right < self.columns:
                yield down, right

    def step(self, state, action):
        hole = state.index(0)
        other = hole + action[0] * self.columns + action[1]
        tiles = list(state)
        tiles[hole], tiles[other] = tiles[other], 0
        return tuple(tiles)


class Grid:
    """Walks on a grid of so many places, each step one up or one right."""

    def __init__(self, width, height):
        self.width, self.height = width, height

    def initial_states(self):
        return [(0, 0)]

    def actions(self, state):
        x, y = state
        return ["right"] * (x + 1 < self.width) + ["up"] * (y + 1 < self.height)

    def step(self, state, action):
        x, y = state
        return (x + 1, y) if action == "right" else (x, y + 1)

    def all_states(self):
        return set(product(range(self.width), range(self.height)))
