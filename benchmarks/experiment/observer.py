"""Another session of PostgreSQL that looks for rows, in the same way for every side."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import psycopg
from documents import due_changes

__all__ = ["LOOK_SECONDS", "Observer", "latencies", "make_table", "wrong_words"]

LOOK_SECONDS = 0.002
GAP_SECONDS = 1.0
"""A number that is not there after this time was drawn by a transaction that was given up."""

_TABLE = """
CREATE TABLE {table} (
    word text NOT NULL, number bigint NOT NULL, document text NOT NULL, positions jsonb NOT NULL,
    documents bigint NOT NULL, seen bigserial PRIMARY KEY
);
CREATE TABLE {table}_ledger (id text PRIMARY KEY);
"""
_WRONG = """
SELECT count(*) FROM (
    SELECT word FROM {table} GROUP BY word
    HAVING count(*) <> max(number) OR count(DISTINCT number) <> max(number)
) AS wrong
"""


def make_table(dsn: str, table: str) -> None:
    """The table of all sides; rows are numbered as they are inserted, so that they can be found."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(_TABLE.format(table=table))


def wrong_words(dsn: str, table: str) -> int:
    """How many words have a change that is missing, or is there twice."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = connection.execute(_WRONG.format(table=table)).fetchone()
    return int(found[0]) if found else 0


class Observer:
    """Notes when each row of a table was there, by the name of its document."""

    def __init__(self, dsn: str, table: str) -> None:
        self._dsn = dsn
        self._query = f"SELECT seen, document FROM {table} WHERE seen > %s ORDER BY seen"
        self.rows: dict[str, list[float]] = defaultdict(list)
        self.first: float | None = None
        """When the first row was there."""
        self.newest = 0.0
        """When the newest row was there."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Observer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        floor, beyond = 0, dict[int, float]()
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._over.wait(LOOK_SECONDS):
                found = connection.execute(self._query, (floor,)).fetchall()
                now = time.time()
                for number, document in found:
                    if number not in beyond:
                        beyond[number] = now
                        self.rows[document].append(now)
                        self.first, self.newest = self.first or now, now
                floor = passed(floor, beyond, now)


def passed(floor: int, beyond: dict[int, float], now: float) -> int:
    """Up to which number all rows are known; those are taken out of the ones beyond it.

    >>> beyond = {1: 0.0, 2: 0.0, 4: 0.0}
    >>> passed(0, beyond, now=0.1), beyond
    (2, {4: 0.0})
    >>> passed(2, beyond, now=9.0), beyond
    (4, {})
    """
    while beyond:
        if floor + 1 not in beyond and now - min(beyond.values()) < GAP_SECONDS:
            break
        floor = floor + 1 if floor + 1 in beyond else min(beyond)
        del beyond[floor]
    return floor


def latencies(
    rows: Mapping[str, Sequence[float]],
    began: float,
    rate: float,
    end: float,
    due: Iterable[tuple[str, int]] | None = None,
) -> list[tuple[float, float | None]]:
    """For each document that is due before `end`: when, and its latency in ms; None: not all out.

    >>> latencies({"d0": [10.1, 10.3]}, 10.0, 50, 10.03, [("d0", 2), ("d1", 1), ("d2", 1)])
    [(10.0, 300.0), (10.02, None)]
    """
    count = max(0, -int(-(end - began) * rate // 1))
    found: list[tuple[float, float | None]] = []
    for number, (name, total) in enumerate(islice(due or due_changes(), count)):
        at = began + number / rate
        times = rows.get(name, ())
        out = round(1000 * (times[total - 1] - at), 3) if len(times) >= total else None
        found.append((at, out))
    return found
