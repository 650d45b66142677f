"""Steps that need neither times nor keys, run on bare values without an event around each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cutwater.flow import steps as s
from cutwater.flow.lowering import named
from cutwater.operators.bounded import bounded

__all__ = ["ByValue", "by_value", "is_by_value", "made_of"]

ByValue = Callable[[Any], Sequence[Any]]
"""``value -> outputs``."""

_KINDS = (s.Map, s.FlatMap, s.Filter, s.Flatten)


def is_by_value(step: s.Step) -> bool:
    """Does the step work on each value by itself, without time or key?"""
    return isinstance(step, _KINDS)


def by_value(steps: Sequence[s.Step], *, is_named: bool = True) -> ByValue:
    """Fuse a chain of such steps into one function from a value to its outputs.

    With `is_named`, a function that raises is reported with its step; without, errors pass
    through unchanged, which is faster.
    """
    functions = [_one(step, is_named) for step in steps]
    if not functions:
        return lambda value: (value,)
    if len(functions) == 1:
        return functions[0]
    first, *others = functions

    def through(value: Any) -> Sequence[Any]:
        values = first(value)
        for function in others:
            values = [output for value in values for output in function(value)]
        return values

    return through


def made_of(steps: Sequence[s.Step]) -> Callable[[Sequence[Any]], list[Sequence[Any]]]:
    """Fuse a chain of such steps into one function from many values to the outputs of each."""
    quick, careful = by_value(steps, is_named=False), by_value(steps)

    def each(values: Sequence[Any]) -> list[Sequence[Any]]:
        try:
            return list(map(quick, values))
        except (Exception, SystemExit):
            return list(map(careful, values))  # slower, but names the step that failed

    return each


def _one(step: s.Step, is_named: bool) -> ByValue:
    assert isinstance(step, _KINDS)
    if isinstance(step, s.Flatten):
        return named(step, list) if is_named else list
    f: Callable[[Any], Any] = named(step, step.f) if is_named else step.f
    if isinstance(step, s.Map):
        return lambda value: (f(value),)
    if isinstance(step, s.Filter):
        return lambda value: (value,) if f(value) else ()
    spread = lambda value: bounded(f(value), step.title)  # noqa: E731
    return named(step, spread) if is_named else spread
