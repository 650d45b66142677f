"""Problems that steps of several kinds can have: fields, lengths, times and unbounded state."""

from __future__ import annotations

from typing import Any

from cutwater.annotations import typename
from cutwater.errors import Problem
from cutwater.flow import steps as s
from cutwater.flow.lengths import is_length, length_in_words

__all__ = ["check_length", "needs_numbers", "never_frees", "type_of_field"]


def check_length(
    step: s.Step, what: str, length: Any, time: Any, problems: list[Problem], *, least: int | None
) -> None:
    """Report a problem unless it is a length in the unit of the times."""
    if is_length(length, time, least=least):
        return
    bound = "not negative" if least == 0 else "larger than zero"
    problems.append(
        Problem(
            "not-a-length",
            f"{step.title} has {what}={length!r}; over times of type {typename(time)} it is "
            f"{length_in_words(time)}, {bound}",
            "give it in the unit of the times",
        )
    )


def type_of_field(
    step: s.Step, name: str, fields: dict[str, Any], owner: Any, problems: list[Problem]
) -> Any:
    """The type of a field; reports a problem if the record has no such field."""
    if name in fields:
        return fields[name]
    has = ", ".join(fields) or "no fields that all of its types share"
    problems.append(
        Problem(
            "unknown-field",
            f"{step.title} names the field '{name}', which {typename(owner)} does not have",
            f"it has: {has}",
        )
    )
    return Any


def needs_numbers(step: s.Step, what: str, time: Any) -> Problem:
    """The problem of a step that computes with times that are not numbers."""
    return Problem(
        "time-is-no-number",
        f"{step.title} runs on times of type {typename(time)}; {what} needs numbers, dates or "
        "datetimes",
        "choose a source field of such a type as its time",
    )


def never_frees(step: s.Step) -> Problem:
    """The problem of a step whose state grows without a bound."""
    return Problem(
        "unbounded-state",
        f"{step.title} keeps every value forever; unbounded state must be requested",
        "pass unbounded=True if the input is finite or small, or use windows",
    )
