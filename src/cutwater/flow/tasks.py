"""Tasks: a pure function on a state and an event, with its initial state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn, get_args, get_origin

from cutwater.annotations import element_of, members, plain_type, signature_of
from cutwater.flow.where import Where, of_function
from cutwater.operators.task import TaskFunction

__all__ = [
    "Task",
    "are_outputs",
    "gives_outputs",
    "task",
]


def gives_outputs(result: Any) -> bool:
    """Can a value of this return type be a pair of state and outputs? Unknown types can.

    >>> gives_outputs(tuple[int, list[str]]), gives_outputs(list[int]), gives_outputs(Any)
    (True, False, True)
    """
    return all(map(_is_state_and_outputs, members(plain_type(result))))


def _is_state_and_outputs(tp: Any) -> bool:
    tp = plain_type(tp)
    kind, args = get_origin(tp) or tp, get_args(tp)
    if tp is Any or tp is NoReturn or not isinstance(kind, type):
        return True
    if not issubclass(kind, tuple):
        return tp is object
    if not args or ... in args:
        return len(getattr(kind, "_fields", (1, 2))) == 2
    return len(args) == 2 and are_outputs(args[1])


def are_outputs(tp: Any) -> bool:
    """Can a value of this type be several outputs? Unknown types can, text cannot.

    >>> are_outputs(list[int]), are_outputs(str), are_outputs(int)
    (True, False, False)
    """
    return all(map(_can_be_gone_through, members(plain_type(tp))))


def _can_be_gone_through(tp: Any) -> bool:
    kind = get_origin(plain_type(tp)) or plain_type(tp)
    if kind in (Any, object) or not isinstance(kind, type):
        return True
    return hasattr(kind, "__iter__") and not issubclass(kind, (str, bytes))


@dataclass(frozen=True)
class Task:
    """A function ``f(state, event) -> (state, outputs)`` and its initial state; callable as `f`."""

    f: TaskFunction
    initial: Any
    """The state of a key before its first event and after its deletion."""
    name: str
    where: Where
    commutative: bool = field(default=False, kw_only=True)
    """Claims that two events of a key may be swapped; `check` tries to refute it."""
    idempotent: bool = field(default=False, kw_only=True)
    """Claims that a repeated event changes nothing; `check` tries to refute it."""

    @property
    def claims(self) -> tuple[str, ...]:
        """The names of the claims made for the function."""
        claims = {"commutative": self.commutative, "idempotent": self.idempotent}
        return tuple(claim for claim, is_made in claims.items() if is_made)

    @cached_property
    def state_type(self) -> Any:
        """The type of the state: annotated, or else the type of the initial state."""
        annotated = signature_of(self.f).parameters[:1]
        known = annotated and annotated[0] is not Any
        return annotated[0] if known else type(self.initial)

    @property
    def event_type(self) -> Any:
        """The type of the events it takes."""
        parameters = signature_of(self.f).parameters
        return parameters[1] if len(parameters) > 1 else Any

    @property
    def output_type(self) -> Any:
        """The type of the values it emits."""
        args = get_args(signature_of(self.f).result)
        return element_of(args[1]) if len(args) == 2 else Any

    def __call__(self, state: Any, event: Any) -> tuple[Any, Sequence[Any]]:
        return self.f(state, event)


def task(
    *,
    initial: Any,
    name: str | None = None,
    commutative: bool = False,
    idempotent: bool = False,
) -> Callable[[TaskFunction], Task]:
    """Decorator that makes a function a task.

    The function is pure: it takes a state and an event and returns the new state (None deletes
    it) and a list of outputs. It stays callable, so it can be unit-tested directly.

    ``check`` tests the claims, and a run that relies on one reports it:

    - ``commutative=True``: two events of a key lead to the same state and the same outputs,
      whichever comes first.
    - ``idempotent=True``: an event repeated directly after itself leaves the state unchanged, and
      emits what it emitted before, or nothing.

    >>> @task(initial=0)
    ... def count(seen: int, event: str) -> tuple[int, list[int]]:
    ...     return seen + 1, [seen + 1]
    >>> count(1, "a"), count.state_type, count.output_type
    ((2, [2]), <class 'int'>, <class 'int'>)
    """

    def decorate(f: TaskFunction) -> Task:
        label = name or str(getattr(f, "__name__", "task"))
        return Task(
            f, initial, label, of_function(f), commutative=commutative, idempotent=idempotent
        )

    return decorate
