"""Tasks: a pure function on a state and an event, with the state to begin with."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from cutwater.flow.where import Where, of_function
from cutwater.operators.task import TaskFunction

__all__ = ["Signature", "Task", "element_of", "signature_of", "task"]


@dataclass(frozen=True, slots=True)
class Signature:
    """The annotated types of a function; `Any` where there is none."""

    parameters: tuple[Any, ...]
    result: Any


def signature_of(f: Callable[..., Any]) -> Signature:
    """What a function's annotations say, as far as they can be resolved."""
    code = getattr(f, "__code__", None)
    if code is None:
        return Signature((), f if isinstance(f, type) else Any)
    try:
        hints = typing.get_type_hints(f)
    except (NameError, TypeError):
        hints = {}
    is_bound = getattr(f, "__self__", None) is not None
    names = code.co_varnames[is_bound : code.co_argcount]
    return Signature(tuple(hints.get(name, Any) for name in names), hints.get("return", Any))


def element_of(tp: Any) -> Any:
    """What a list, tuple or iterable type holds.

    >>> element_of(list[int]), element_of(Any)
    (<class 'int'>, typing.Any)
    """
    origin, args = get_origin(tp), get_args(tp)
    is_sequence = isinstance(origin, type) and issubclass(
        origin, (list, tuple, set, frozenset, Sequence, Iterator, Iterable)
    )
    return args[0] if is_sequence and args and origin is not dict else Any


@dataclass(frozen=True)
class Task:
    """A function ``f(state, event) -> (state, outputs)`` and its initial state; callable as `f`."""

    f: TaskFunction
    initial: Any
    """The state of a key before its first event, and after its deletion."""
    name: str
    where: Where

    @property
    def state_type(self) -> Any:
        """What the state is: by annotation, else the type of the initial state."""
        annotated = signature_of(self.f).parameters[:1]
        known = annotated and annotated[0] is not Any
        return annotated[0] if known else type(self.initial)

    @property
    def event_type(self) -> Any:
        """What the task takes."""
        parameters = signature_of(self.f).parameters
        return parameters[1] if len(parameters) > 1 else Any

    @property
    def output_type(self) -> Any:
        """What the task emits."""
        args = get_args(signature_of(self.f).result)
        return element_of(args[1]) if len(args) == 2 else Any

    def __call__(self, state: Any, event: Any) -> tuple[Any, Sequence[Any]]:
        return self.f(state, event)


def task(*, initial: Any, name: str | None = None) -> Callable[[TaskFunction], Task]:
    """Makes a function a task.

    The function is pure: it takes a state and an event and returns the new state (None deletes
    it) and a list of outputs. It stays callable, so it can be tested as it is.

    >>> @task(initial=0)
    ... def count(seen: int, event: str) -> tuple[int, list[int]]:
    ...     return seen + 1, [seen + 1]
    >>> count(1, "a"), count.state_type, count.output_type
    ((2, [2]), <class 'int'>, <class 'int'>)
    """

    def decorate(f: TaskFunction) -> Task:
        return Task(f, initial, name or str(getattr(f, "__name__", "task")), of_function(f))

    return decorate
