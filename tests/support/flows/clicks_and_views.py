"""Two sources, a join, windows, and a second level: nothing of it shows where epochs end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cutwater as cw


@dataclass(frozen=True)
class Click:
    """What comes in, on both sides."""

    user: str
    at: int


@dataclass(frozen=True)
class Pair:
    """A click and a view of the same user at the same time."""

    user: str
    at: int


@dataclass(frozen=True)
class Total:
    """How many clicks a user has had."""

    user: str
    number: int


@dataclass(frozen=True)
class Share:
    """How many totals fell into a class so far."""

    parity: int
    number: int


@cw.task(initial=0)
def number(state: int, click: Click) -> tuple[int, list[Total]]:
    """Count the clicks of a user."""
    return state + 1, [Total(click.user, state + 1)]


@cw.task(initial=0)
def share(state: int, total: Total) -> tuple[int, list[Share]]:
    """Count by parity, one level deeper."""
    return state + 1, [Share(total.number % 2, state + 1)]


def paired(click: Click, view: Click) -> Pair:
    """Join the two."""
    return Pair(click.user, click.at)


def parity(total: Total) -> int:
    """The key of the second level."""
    return total.number % 2


def make() -> cw.Flow:
    """The flow."""
    made = cw.Flow("clicks and views")
    rule = cw.bounded_delay(100)
    clicks = made.source("clicks", Click, time="at", watermark=rule).key_by("user")
    views = made.source("views", Click, time="at", watermark=rule).key_by("user")
    made.sink("pairs", clicks.join(views, paired))
    made.sink("windows", clicks.window(cw.tumbling(10)).aggregate(clicks=cw.agg.count()))
    made.sink("totals", clicks.apply(number).key_by(parity).apply(share))
    return made


flow = make()


def inputs(first: int, last: int) -> dict[str, list[Any]]:
    """What each source has, from one number to another."""
    made = [Click("abcd"[n * n % 4], n) for n in range(first, last)]
    return {"clicks": made, "views": made[::2]}
