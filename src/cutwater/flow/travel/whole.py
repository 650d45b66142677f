"""A flow as bytes, with the user's own modules by value; or the problems that prevent it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from cutwater.errors import CutwaterError, Problem, RefusedError
from cutwater.flow.builder import Flow
from cutwater.flow.timely.bodies import with_bodies
from cutwater.flow.travel.pickling import pickle_by_value
from cutwater.flow.travel.unpicklable import unpicklable
from cutwater.flow.user_modules import held_by, own_modules

__all__ = ["dump_whole"]


def dump_whole(value: Any, flow: Flow, bound: Iterable[Any] = ()) -> bytes:
    """Pickle a value that holds a flow, for processes that cannot import the user's modules.

    `bound` are the sources and sinks that it holds, too. Raises `RefusedError`, with one problem
    for each variable that cannot be sent where such variables are found.
    """
    try:
        return pickle_by_value(value, _modules(flow, bound))
    except CutwaterError:
        raise
    except Exception as error:  # pickling runs code of the user's classes
        found = unpicklable(flow.steps) or [_cannot_travel(flow, error)]
        raise RefusedError(found) from error


def _modules(flow: Flow, bound: Iterable[Any]) -> list[ModuleType]:
    held = held_by([*with_bodies(flow.steps), *bound])
    return [sys.modules[name] for name in own_modules(held)]


def _cannot_travel(flow: Flow, error: Exception) -> Problem:
    return Problem(
        "flow-cannot-travel",
        f"flow '{flow.name}' cannot be sent to Spark's processes: {error}",
        "open files, connections and locks inside the functions that use them",
    )
