"""Checks that a step was given a function, and one that accepts what its stream carries."""

from __future__ import annotations

from typing import Any

from cutwater.annotations import fits, signature_of, typename
from cutwater.errors import Problem
from cutwater.flow import steps as s

__all__ = ["check_is_function", "check_takes"]


def check_is_function(step: s.Step, f: Any, problems: list[Problem]) -> bool:
    """Report a problem if a step was not given a function; returns whether it was."""
    if not callable(f):
        problems.append(
            Problem(
                "not-a-function",
                f"{step.title} was given {f!r}; it takes a function",
                "pass the function itself, for example a lambda",
            )
        )
    return callable(f)


def check_takes(step: s.Step, f: Any, position: int, value: Any, problems: list[Problem]) -> None:
    """Report a problem if the parameter at a position does not accept such values."""
    if not check_is_function(step, f, problems):
        return
    parameters = signature_of(f).parameters
    wanted = parameters[position] if len(parameters) > position else Any
    if not fits(value, wanted):
        problems.append(
            Problem(
                "event-type",
                f"{step.title} takes {typename(wanted)}; its stream carries {typename(value)}",
                "widen the annotation, or map the stream to that type",
            )
        )
