"""Two sources that are counted apart: one shown in a topic, one by a function."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cutwater as cw

CALLS = "CUTWATER_TEST_CALLS"
"""The variable that names the folder in which calls are noted."""


@dataclass(frozen=True)
class Order:
    """What comes in, on both sides."""

    id: int
    user: str


@dataclass(frozen=True)
class Counted:
    """The how many-th of its user an order is."""

    user: str
    id: int
    number: int


@cw.task(initial=0)
def counted(seen: int, order: Order) -> tuple[int, list[Counted]]:
    """Count the orders of a user."""
    return seen + 1, [Counted(order.user, order.id, seen + 1)]


def orders(start: int, stop: int) -> list[Order]:
    """Some orders of seven users."""
    return [Order(n, f"u{n % 7}") for n in range(start, stop)]


def note(tick: int, bucket: int, rows: list[Any]) -> None:
    """Write down what a call was given; a call that is made again replaces what it wrote."""
    lines = "".join(json.dumps(vars(row)) + "\n" for row in rows)
    (Path(os.environ[CALLS]) / f"{tick:012}-{bucket}").write_text(lines)


flow = cw.Flow("orders and payments")
flow.sink("ordered", flow.source("orders", Order).key_by("user").apply(counted, name="ordering"))
flow.sink("paid", flow.source("payments", Order).key_by("user").apply(counted, name="paying"))
