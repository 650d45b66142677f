"""Random small systems of P2: a finite relation D, and a recovery that restores what is stored."""

import random
from itertools import combinations

from cutwater.semantics.delivery.model import DeliveryModel
from cutwater.semantics.delivery.system import Bag, Element, System, bag

RANKS = (
    (Element("in", "a"), Element("in", "b")),
    (Element("inner", "m"), Element("inner", "n")),
    (Element("out", "x"), Element("out", "y"), Element("snapshot", "s")),
)
INPUTS = RANKS[0]


def drawn_system(drawn: random.Random) -> System:
    """Rules lead from lower ranks to higher ones, so every run ends."""
    rules = [_rule(drawn) for _ in range(drawn.randint(2, 5))]
    choice = drawn.randrange(2**16)

    def transforms(working: Bag, outputs: Bag):
        return [rule for rule in rules if rule[0] <= working]

    def leaving(working: Bag, outputs: Bag):
        return [e for e in working.distinct() if e.kind in ("out", "snapshot")]

    def recover(inputs: Bag, outputs: Bag):
        stored = (inputs + outputs).elements[:3]
        within = [bag(*some) for n in range(len(stored) + 1) for some in combinations(stored, n)]
        return (within[choice % len(within)],)

    return System("drawn", str(choice), transforms, leaving, recover)


def _rule(drawn: random.Random) -> tuple[Bag, Bag]:
    rank = drawn.randrange(2)
    taken = drawn.sample(RANKS[rank], drawn.randint(1, 2))
    later = [element for elements in RANKS[rank + 1 :] for element in elements]
    return bag(*taken), bag(*drawn.choices(later, k=drawn.randint(0, 2)))


def sequences(model: DeliveryModel) -> set[tuple]:
    """What is seen of every run, prefixes included, without repetitions."""
    found = set()
    todo = [(point, (model.observation(point),)) for point in model.initial_states()]
    known = set(todo)
    while todo:
        point, seen = todo.pop()
        found.add(seen)
        for step in model.actions(point):
            there = model.step(point, step)
            now = model.observation(there)
            follower = (there, seen if now == seen[-1] else (*seen, now))
            if follower not in known:
                known.add(follower)
                todo.append(follower)
    return found
