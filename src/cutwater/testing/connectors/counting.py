"""A flow whose output shows from outside whether anything was lost, duplicated or reordered.

Every event has a key and a position; every row has the key, how many of that key there were so
far, and the position. A lost row leaves a gap in the numbers of its key, a state that goes back or
runs ahead repeats or skips a number, and a row that is written twice appears twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cutwater.flow import Flow, task
from cutwater.testing.connectors import traps

__all__ = [
    "KEYS",
    "SOURCE",
    "Click",
    "Counted",
    "arrive",
    "click",
    "count_clicks",
    "expected",
    "flow_to",
]

KEYS = 40
SOURCE = "clicks"


@dataclass(frozen=True)
class Click:
    """An input event."""

    key: str
    position: int


@dataclass(frozen=True)
class Counted:
    """An output row: the `number`-th click of its key."""

    key: str
    number: int
    position: int


def click(position: int) -> Click:
    """Return the event at a position; the order of keys has a long period."""
    return Click(f"k{position * position // 7 % KEYS}", position)


def arrive(event: Click) -> Click:
    """Forward an event, in the task that reads it."""
    traps.at("before-the-batch", event.position)
    return event


@task(initial=0)
def count_clicks(seen: int, event: Click) -> tuple[int, list[Counted]]:
    """Count the clicks of a key."""
    traps.at("in-the-batch", event.position)
    return seen + 1, [Counted(event.key, seen + 1, event.position)]


def flow_to(sinks: Iterable[str], arrive: Callable[[Click], Click] = arrive) -> Flow:
    """Return the flow, with sinks that all get the same rows."""
    flow = Flow("counting")
    counted = flow.source(SOURCE, Click).map(arrive).key_by("key").apply(count_clicks)
    for name in sinks:
        flow.sink(name, counted)
    return flow


def expected(total: int) -> dict[str, list[tuple[int, int]]]:
    """Return number and position of all rows of each key, in order."""
    rows: dict[str, list[tuple[int, int]]] = {}
    for event in map(click, range(total)):
        of_key = rows.setdefault(event.key, [])
        of_key.append((len(of_key) + 1, event.position))
    return rows
