"""Outputs for one event, of which there is an end.

A list that is made of an endless iterator takes all memory, and no signal ends that.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from cutwater.errors import Problem, StepError

__all__ = ["MOST_OUTPUTS", "bounded"]

MOST_OUTPUTS = 10_000_000
"""So many values a lazy function may emit for one event."""


def bounded(values: Iterable[Any], name: str, most: int | None = None) -> list[Any]:
    """The values as a list; raises `StepError` if there are more than `most`."""
    if isinstance(values, (list, tuple)):
        return list(values)
    most = MOST_OUTPUTS if most is None else most
    found = list(islice(values, most + 1))
    if len(found) > most:
        raise StepError(
            Problem(
                "endless-outputs",
                f"'{name}' emitted more than {most:,} values for one event, the most that are "
                "waited for; it may never end",
                "return a list that ends",
            )
        )
    return found
