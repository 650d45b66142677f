"""Generated readings, their running mean in real time, and a function that puts it into a file.

What the last act of `make demo` runs (demo_realtime.py): no server is needed. A function sink is
at-least-once; this one is exact, since it keeps what it was called with beside the rows.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from dataclasses import astuple, dataclass

import cutwater as cw

SENSORS = 20
TABLE = "means"
PLACE = "CUTWATER_DEMO_TABLE"
"""The variable that names the file with the table."""


@dataclass(frozen=True)
class Reading:
    """What a sensor measured."""

    sensor: str
    number: int
    value: float


@dataclass(frozen=True)
class Mean:
    """The mean of the first `count` readings of a sensor."""

    sensor: str
    count: int
    number: int
    mean: float


def reading(number: int) -> Reading:
    """Make the reading with a number; the same each time."""
    rng = random.Random(number)
    return Reading(f"sensor-{rng.randrange(SENSORS)}", number, round(rng.gauss(20, 5), 2))


@cw.task(initial=(0.0, 0))
def running_mean(state: tuple[float, int], event: Reading) -> tuple[tuple[float, int], list[Mean]]:
    """The mean so far."""
    total, count = state[0] + event.value, state[1] + 1
    return (total, count), [Mean(event.sensor, count, event.number, total / count)]


flow = cw.Flow("live")
flow.sink("means", flow.source("readings", Reading).key_by("sensor").apply(running_mean))

inputs = {"readings": [reading(0), reading(1), cw.BARRIER, reading(2)]}


def connect(path: str) -> sqlite3.Connection:
    """Open the file with the table; several processes write and read it at once."""
    table = sqlite3.connect(path, timeout=30, isolation_level=None)
    table.execute("PRAGMA journal_mode = WAL")
    table.execute("PRAGMA synchronous = OFF")  # it is to survive a kill, not a power loss
    return table


def create(path: str) -> None:
    """Make the tables: the rows, and which calls were done."""
    columns = "sensor, count, number, mean, pid, at"
    with connect(path) as table:
        table.execute(f"CREATE TABLE {TABLE} ({columns})")
        table.execute("CREATE TABLE calls (bucket, tick, PRIMARY KEY (bucket, tick))")


def show(tick: int, bucket: int, rows: list[Mean]) -> None:
    """Add rows, with a note of this call in the same transaction; a repeated call adds nothing."""
    table = connect(os.environ[PLACE])
    try:
        table.execute("BEGIN IMMEDIATE")
        done = table.execute("INSERT OR IGNORE INTO calls VALUES (?, ?)", (bucket, tick))
        if done.rowcount:
            shown = [(*astuple(row), os.getpid(), time.time()) for row in rows]
            table.executemany(f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?, ?, ?)", shown)
        table.execute("COMMIT")
    finally:
        table.close()
