"""The forms of operators that are made of others, and what these emit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cutwater.annotations import union_of
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import Form, row_of
from cutwater.operators.stateless import always

__all__ = ["emitted", "emitted_by_all", "form_of_all", "part_form"]


def emitted(op: Operator, time: Any, value: Any) -> Any:
    """The type of the values that an operator emits; `Any` if it does not say."""
    return op.emits(time, value) if op.emits else Any


def emitted_by_all(operators: Sequence[Operator]) -> Callable[[Any, Any], Any]:
    """What the last of a chain emits."""

    def emits(time: Any, value: Any) -> Any:
        for op in operators:
            value = emitted(op, time, value)
        return value

    return emits


def form_of_all(operators: Sequence[Operator]) -> Callable[[Any, Any], Form]:
    """The form of a chain: a row of the forms of its parts."""

    def form(time: Any, value: Any) -> Form:
        forms = []
        for op in operators:
            forms.append(part_form(op, time, value))
            value = emitted(op, time, value)
        return Form(
            row_of(*(part.type for part in forms)),
            lambda state: tuple(
                part.freeze(inner) for part, inner in zip(forms, state, strict=True)
            ),
            lambda kept: tuple(part.thaw(inner) for part, inner in zip(forms, kept, strict=True)),
        )

    return form


def part_form(op: Operator, time: Any, value: Any) -> Form:
    """The form of an operator inside another one, whose state may be blank by itself.

    What is blank is kept as None, unless it began with a key, which is not known any more when it
    comes back.
    """
    if op.is_blank is always:
        return Form(type(None), lambda _state: None, lambda _kept: op.initial)
    inner = op.form(time, value) if op.form else Form(Any)
    if op.start is not None:
        return inner

    def freeze(state: Any) -> Any:
        return None if op.is_blank(state) else inner.freeze(state)

    def thaw(kept: Any) -> Any:
        return op.initial if kept is None else inner.thaw(kept)

    return Form(union_of([inner.type, type(None)]), freeze, thaw)
