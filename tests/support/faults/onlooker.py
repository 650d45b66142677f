"""An observer that reads the output of a counting run all the time, whatever happens to the run.

It sees nothing else of the run: at every look each part of the output must be a prefix of what a
run without failures shows, in order. A part is what the sink keeps in order: a bucket in a table, a
key in a topic.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import psycopg
from confluent_kafka import KafkaException

from cutwater.ordering import bucket_of, canonical
from cutwater.testing.connectors.counting import click

BUCKETS = 16
"""Of the flow, if it is told no other number."""
_UNREACHABLE = (psycopg.OperationalError, KafkaException, TimeoutError)
_Row = tuple[str, int, int]
"""Key, number and position."""


def by_bucket(key: str) -> object:
    """The part of a table that has a key."""
    return bucket_of(canonical(key), BUCKETS)


def by_key(key: str) -> object:
    """The part of a topic that has a key: buckets that share a partition interleave."""
    return key


class Expected:
    """What a run without failures shows of each part, as far as it was asked for."""

    def __init__(self, part_of: Callable[[str], object]) -> None:
        self._part_of = part_of
        self._numbers: dict[str, int] = {}
        self._rows: dict[object, list[_Row]] = {}
        self._known = 0

    def check(self, rows: Iterable[Mapping[str, Any]]) -> int:
        """Refuse rows that are no prefix in every part; how many there are."""
        seen: dict[object, list[_Row]] = {}
        for row in rows:
            found = (row["key"], row["number"], row["position"])
            seen.setdefault(self._part_of(row["key"]), []).append(found)
        total = sum(map(len, seen.values()))
        self._extend(max((position for part in seen.values() for *_, position in part), default=-1))
        for part, found_rows in seen.items():
            wanted = self._rows.get(part, [])[: len(found_rows)]
            assert found_rows == wanted, _difference(part, found_rows, wanted)
        return total

    def _extend(self, position: int) -> None:
        for number in range(self._known, position + 1):
            key = click(number).key
            self._numbers[key] = self._numbers.get(key, 0) + 1
            row = (key, self._numbers[key], number)
            self._rows.setdefault(self._part_of(key), []).append(row)
        self._known = max(self._known, position + 1)


def _difference(part: object, found: list[_Row], wanted: list[_Row]) -> str:
    both = enumerate(zip(found, wanted, strict=False))
    at = next((n for n, (one, other) in both if one != other), len(wanted))
    return f"part {part} shows {found[at : at + 3]} at {at}, and not {wanted[at : at + 3]}"


class Onlooker:
    """Looks until it is told to end; what it saw that must not be is raised by `check`."""

    def __init__(
        self, read: Callable[[], Iterable[Mapping[str, Any]]], part_of: Callable[[str], object]
    ) -> None:
        self._read, self._expected = read, Expected(part_of)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self._failure: Exception | None = None
        self.rows = self.looks = 0
        """How many rows the last look found, and how many looks there were."""

    def __enter__(self) -> "Onlooker":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.join(60)

    def check(self) -> None:
        """Raise what went wrong so far."""
        if self._failure is not None:
            raise self._failure

    def _look_on(self) -> None:
        while not self._is_over.is_set():
            began = time.monotonic()
            try:
                self.rows = self._expected.check(self._read())
                self.looks += 1
            except _UNREACHABLE:
                pass  # the server is down, or frozen: nobody sees anything
            except Exception as error:
                self._failure = error
                return
            self._is_over.wait(max(0.1, 3 * (time.monotonic() - began)))
