"""Tasks and functions that are not pure, each in its own way; in a module that can be imported."""

from __future__ import annotations

import datetime as dt
import random
import time
from dataclasses import dataclass, field

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


def in_hash_order(event: int) -> list[str]:
    return list({"alpha", "beta", "gamma", "delta", "epsilon", str(event)})


def dated(event: int) -> str:
    return str(dt.date.today())


@cw.task(initial=0)
def pure(state: int, event: int) -> tuple[int, list[int]]:
    return state + event, [state + event]
