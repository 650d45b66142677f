"""A bound on the outputs for one event.

Building a list from an endless iterator exhausts memory, and no signal interrupts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from cutwater.errors import Problem, StepError

__all__ = ["MOST_OUTPUTS", "bounded"]

MOST_OUTPUTS = 10_000_000
"""The most values that a lazy function may emit for one event."""


def bounded(values: Iterable[Any], step: str, most: int | None = None) -> list[Any]:
    """The values as a list; raises `StepError` if a lazy iterable has more than `most`.

    `step` is the step as messages name it.
    """
    if isinstance(values, (list, tuple)):
        return list(values)
    most = MOST_OUTPUTS if most is None else most
    found = list(islice(values, most + 1))
    if len(found) > most:
        raise StepError(
            Problem(
                "endless-outputs",
                f"{step} emitted more than {most:,} values for one event, the most that are "
                "waited for; it may never end",
                "return a list that ends",
            )
        )
    return found
