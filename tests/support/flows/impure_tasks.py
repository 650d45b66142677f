"""Tasks and functions that are not pure, each in its own way; in a module that can be imported."""

from __future__ import annotations

import datetime as dt
import random
import time
from dataclasses import dataclass, field
from functools import cached_property

import cutwater as cw

calls = 0
seen: set[int] = set()


@dataclass
class Kept:
    """A state that can be changed in place."""

    items: list[int] = field(default_factory=list)


@cw.task(initial=0)
def rolls(state: int, event: int) -> tuple[int, list[float]]:
    return state + 1, [random.random()]


@cw.task(initial=0)
def tells_time(state: int, event: int) -> tuple[int, list[float]]:
    return state + 1, [time.time()]


@cw.task(initial=0)
def counts_calls(state: int, event: int) -> tuple[int, list[int]]:
    global calls
    calls += 1
    return state + 1, [calls]


@cw.task(initial=0)
def remembers(state: int, event: int) -> tuple[int, list[int]]:
    is_new = event not in seen
    seen.add(event)
    return state + 1, [event] if is_new else []


@cw.task(initial=Kept())
def appends(state: Kept, event: int) -> tuple[Kept, list[int]]:
    state.items.append(event)
    return state, [len(state.items)]


def spills(event: Kept) -> int:
    event.items.append(1)
    return len(event.items)


@dataclass(frozen=True)
class Level:
    """A state that is compared by its fields, here and after a restart."""

    of: int


UNKNOWN = Level(-1)


@cw.task(initial=Level(0))
def by_identity(state: Level, event: int) -> tuple[Level, list[bool]]:
    """A state that was restored is no longer that object."""
    return UNKNOWN, [state is UNKNOWN]


@dataclass(frozen=True)
class Tagged:
    """An event that draws its tag when it is first asked for it."""

    number: int

    @cached_property
    def tag(self) -> float:
        return random.random()


def tag_of(event: Tagged) -> float:
    return event.tag


reused = Kept()


def reuses(event: int) -> Kept:
    """All its results are one object."""
    reused.items = [event]
    return reused


@cw.task(initial=Kept())
def one_for_all_keys(state: Kept, event: int) -> tuple[Kept, list[int]]:
    """The states of all keys are one object."""
    reused.items = [*state.items, event]
    return reused, [len(reused.items)]


last: list[Kept] = []


def changes_an_earlier(event: Kept) -> int:
    """It keeps its events, and changes one when the next comes."""
    for each in last:
        each.items = []
    last[:] = [event]
    return len(event.items)


@cw.task(initial=0)
def emits_a_set(state: int, event: int) -> tuple[int, set[str]]:
    return state, {"alpha", "beta", "gamma", "delta", str(event)}


def dict_in_hash_order(event: int) -> dict[str, int]:
    return dict.fromkeys({"alpha", "beta", "gamma", "delta", str(event)}, event)


def dict_in_its_own_order(event: int) -> dict[str, int]:
    return dict.fromkeys(["delta", "alpha", str(event)], event)


def in_hash_order(event: int) -> list[str]:
    return list({"alpha", "beta", "gamma", "delta", "epsilon", str(event)})


def dated(event: int) -> str:
    return str(dt.date.today())


@cw.task(initial=0)
def pure(state: int, event: int) -> tuple[int, list[int]]:
    return state + event, [state + event]
