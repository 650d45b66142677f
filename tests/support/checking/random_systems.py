"""Random systems of tasks, and random valid runs of them with crashes and recoveries.

Everything is drawn from a seed. The value of most tasks is the tuple of all they saw, and they emit
it: stateful, sensitive to order, not idempotent.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from cutwater.semantics.barrier_model import BarrierModel, Barriers, Move, Point
from cutwater.semantics.barriers import Configuration, Task, initial_configuration
from cutwater.semantics.wellformed import checked_configuration, graph_of

seeds = st.integers(0, 2**32 - 1)


def keep(value: tuple[Any, ...], word: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Keep all that came and emit it."""
    return (*value, word), [(*value, word)]


def swallow(value: tuple[Any, ...], word: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Keep all that came and emit nothing for every second word."""
    seen = (*value, word)
    return seen, [] if len(seen) % 2 else [len(seen)]


def twice(value: tuple[Any, ...], word: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Keep all that came and emit two words for each."""
    return (*value, word), [len(value), word]


FUNCTIONS = (keep, keep, swallow, twice)


def random_tasks(
    drawn: random.Random, sources: Sequence[str], most: int, functions: Sequence[Any] = FUNCTIONS
) -> list[Task]:
    """An acyclic graph; some streams are read by several tasks, some tasks read several."""
    streams = list(sources)
    tasks = []
    unread = list(sources)
    for i in range(drawn.randint(1, most)):
        count = drawn.choice([1, 1, 2, 3])
        inputs = drawn.sample(streams, min(count, len(streams)))
        unread = [stream for stream in unread if stream not in inputs]
        tasks.append(Task(f"t{i}", drawn.choice(functions), tuple(inputs), f"s{i}", ()))
        streams.append(f"s{i}")
    if unread:
        last = tasks[-1]
        inputs = (*last.inputs, *unread)
        tasks[-1] = Task(last.name, last.f, inputs, last.output, ())
    drawn.shuffle(tasks)
    return tasks


def random_system(
    drawn: random.Random,
    *,
    tasks: int = 5,
    sources: int = 3,
    epochs: int = 3,
    events: int = 3,
    functions: Sequence[Any] = FUNCTIONS,
) -> Configuration:
    """A valid initial configuration with at most so many of each."""
    names = [f"in{i}" for i in range(drawn.randint(1, sources))]
    graph = graph_of(random_tasks(drawn, names, tasks, functions))
    count = drawn.randint(1, epochs)
    inputs = {
        name: [
            [f"{name}.{e}.{i}" for i in range(drawn.randint(0, events))]
            for e in range(1, count + 1)
        ]
        for name in names
    }
    return checked_configuration(initial_configuration(graph, inputs))


@dataclass(frozen=True)
class Run:
    """A valid run: its moves and all its configurations, one more than moves."""

    moves: tuple[Move, ...]
    configurations: tuple[Configuration, ...]

    @property
    def initial(self) -> Configuration:
        return self.configurations[0]

    @property
    def last(self) -> Configuration:
        return self.configurations[-1]


def random_run(
    initial: Configuration,
    drawn: random.Random,
    *,
    crashes: int = 4,
    longest: int = 120,
    protocol: Barriers | None = None,
) -> Run:
    """A run in which at most so many tasks crash, often while another is down."""
    model = BarrierModel(initial, crashes=crashes, protocol=protocol)
    here = Point(initial, crashes)
    moves, configurations = list[Move](), [initial]
    for _ in range(drawn.choice([longest // 4, longest, longest])):
        possible = model.actions(here)
        if not possible:
            break
        # crashes are as likely as all other moves together would make them too frequent
        work = [move for move in possible if type(move).__name__ != "Fail"]
        move = drawn.choice(work if work and drawn.random() < 0.9 else possible)
        here = model.step(here, move)
        moves.append(move)
        configurations.append(here.configuration)
    return Run(tuple(moves), tuple(configurations))


def replayed(
    initial: Configuration, moves: Sequence[Move], start: Configuration | None = None
) -> list[Configuration] | None:
    """The configurations of moves by the rules; None if one of them is not possible.

    They begin at `start`, which may lie in the middle of a run from `initial`.
    """
    model = BarrierModel(initial, crashes=len(moves))
    here = Point(start or initial, len(moves))
    found = [here.configuration]
    for move in moves:
        if move not in model.actions(here):
            return None
        here = model.step(here, move)
        found.append(here.configuration)
    return found


def drawn_run(seed: int, **options: Any) -> Run:
    """A run of a random system, both drawn from one seed."""
    drawn = random.Random(seed)
    return random_run(random_system(drawn), drawn, **options)
