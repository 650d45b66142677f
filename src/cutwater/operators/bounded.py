"""A bound on the outputs for one event.

Building a list from an endless iterator exhausts memory, and no signal interrupts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from sys import getsizeof
from typing import Any

from cutwater.errors import Problem, StepError

__all__ = ["MOST_BYTES", "MOST_OUTPUTS", "bounded"]

MOST_OUTPUTS = 10_000_000
"""The most values that a lazy function may emit for one event."""
MOST_BYTES = 1 << 30
"""The most bytes that these may have, as far as the values themselves tell."""


def bounded(values: Iterable[Any], step: str, most: int | None = None) -> list[Any]:
    """The values as a list; raises `StepError` if a lazy iterable has more than `most`
    or is larger than `MOST_BYTES`.

    `step` is the step as messages name it.
    """
    if isinstance(values, (list, tuple)):
        return list(values)
    most = MOST_OUTPUTS if most is None else most
    found: list[Any] = []
    rest, size = iter(values), 0
    while part := list(islice(rest, min(len(found) + 1, most + 1 - len(found)))):
        found += part
        size += sum(map(getsizeof, part))
        if len(found) > most:
            raise _endless(step, f"{most:,} values")
        if size > MOST_BYTES:
            raise _endless(step, f"{MOST_BYTES >> 20:,} MiB")
    return found


def _endless(step: str, most: str) -> StepError:
    return StepError(
        Problem(
            "endless-outputs",
            f"{step} emitted more than {most} for one event, which is the limit; it may never end",
            "return a list that ends",
        )
    )
