"""The requests that a step makes before its first event (P3's ``Initial(p)``)."""

from __future__ import annotations

from typing import Any

from cutwater.annotations import fits, typename, union_of
from cutwater.errors import Problem
from cutwater.flow import steps as s
from cutwater.flow.lengths import is_total

__all__ = ["request_problems"]


def request_problems(step: s.OnComplete, time: Any, is_keyed: bool) -> list[Problem]:
    """The problems with a step's requests, on a stream with times of this type."""
    problems = [_of_another_kind(step, t, time) for t in step.requests if not _is_one(t, time)]
    if step.requests and is_keyed:
        problems.append(
            Problem(
                "requests-of-keys",
                f"{step.title} has requests={list(step.requests)!r} on a keyed stream; a key is "
                "not known before its first event, so nothing can be asked for it from the start",
                "let receive return Notify(time), or put the step before key_by",
            )
        )
    return problems


def _is_one(value: Any, time: Any) -> bool:
    return fits(type(value), time) or is_total(union_of([type(value), time]))


def _of_another_kind(step: s.OnComplete, value: Any, time: Any) -> Problem:
    return Problem(
        "request-of-another-kind",
        f"{step.title} asks to be notified of {value!r}; the times of its stream are of type "
        f"{typename(time)}",
        "ask for times of the kind that the source has",
    )
