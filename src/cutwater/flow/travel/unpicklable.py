"""Names the variables of a flow's functions that cannot be sent to other processes: locks, sockets.

A function of the user's own module is pickled by value, with the globals, closure and defaults
it references, and so are the functions that these reference; a referenced module is sent whole.
`dump_whole` decides whether all of it can be pickled; this module finds what it failed at.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from cutwater.errors import Problem
from cutwater.flow import steps as s
from cutwater.flow.tasks import Task
from cutwater.flow.timely import with_bodies
from cutwater.flow.travel.pickling import pickle_by_value
from cutwater.flow.user_modules import is_installed

__all__ = ["global_names", "unpicklable"]


def unpicklable(steps: Iterable[s.Step]) -> list[Problem]:
    """One problem for each variable of a step that cannot be sent; loops' bodies included."""
    problems = []
    for step in with_bodies(steps):
        walk = _Walk()
        for what, thing in _functions_and_states(step):
            walk.enter(what, thing)
        problems += [_cannot_travel(step, found) for found in walk.found]
    return problems


def _functions_and_states(step: s.Step) -> Iterator[tuple[str, Any]]:
    """The user's objects in a step: functions, and initial states."""
    if isinstance(step, s.Apply) and isinstance(step.task, Task):
        yield "", step.task.f
        yield "initial", step.task.initial
    for name in ("f", "receive", "complete"):
        if callable(getattr(step, name, None)):
            yield "", getattr(step, name)
    if isinstance(step, s.Operate):
        yield from (("", f) for f in (step.op.step, step.op.finish, step.op.barrier) if f)
        yield "initial", step.op.initial
    if isinstance(step, s.OnComplete):
        yield "initial", step.initial


class _Found(NamedTuple):
    name: str
    value: Any
    error: str


def _cannot_travel(step: s.Step, found: _Found) -> Problem:
    kind = type(found.value)
    return Problem(
        "flow-cannot-travel",
        f"{step.title} uses '{found.name}', a {kind.__module__}.{kind.__qualname__}, which cannot "
        f"be sent to Spark's processes: {found.error}",
        "open files, connections and locks inside the functions that use them",
    )


class _Walk:
    """Follows the references of functions, visiting each object once."""

    def __init__(self) -> None:
        self.found: list[_Found] = []
        self._seen: dict[int, Any] = {}

    def enter(self, name: str, thing: Any) -> None:
        if id(thing) in self._seen:
            return
        self._seen[id(thing)] = thing  # held, so that its id is not reused
        if isinstance(thing, (FunctionType, MethodType, partial, Task, ModuleType, type)):
            for inner, value in _named_by(thing):
                self.enter(_joined(name, inner), value)
        elif not isinstance(thing, BuiltinFunctionType):
            self._leaf(name, thing)

    def _leaf(self, name: str, value: Any) -> None:
        try:
            pickle_by_value(value)
        except Exception as error:  # pickling runs code of the user's classes
            if not self._inside(name, value):
                self.found.append(_Found(name, value, str(error)))

    def _inside(self, name: str, value: Any) -> bool:
        """Look inside a container or an object; returns whether anything was found."""
        before = len(self.found)
        for inner, part in _parts_of(value):
            self.enter(_joined(name, inner), part)
        return len(self.found) > before


def _joined(name: str, inner: str) -> str:
    return f"{name}.{inner}" if name and inner and inner[0] != "[" else f"{name}{inner}"


def _named_by(thing: Any) -> Iterator[tuple[str, Any]]:
    """The variables that are sent with a function, a class or a module."""
    if isinstance(thing, partial):
        yield "", thing.func
        yield from ((f"[{n}]", value) for n, value in enumerate(thing.args))
        yield from thing.keywords.items()
    elif isinstance(thing, MethodType):
        yield "", thing.__func__
        yield "self", thing.__self__
    elif isinstance(thing, Task):
        yield from (("", thing.f), ("initial", thing.initial))
    elif isinstance(thing, ModuleType):
        if not is_installed(thing.__name__):
            yield from ((n, v) for n, v in vars(thing).items() if not n.startswith("__"))
    elif _is_sent_by_value(thing):
        yield from _of_function(thing) if isinstance(thing, FunctionType) else _of_class(thing)


def _is_sent_by_value(thing: Any) -> bool:
    name = getattr(thing, "__module__", None)
    is_local = "<locals>" in getattr(thing, "__qualname__", "")
    return is_local or name not in sys.modules or not is_installed(name)


def _of_function(f: FunctionType) -> Iterator[tuple[str, Any]]:
    for name in dict.fromkeys(global_names(f.__code__)):
        if name in f.__globals__:
            yield name, f.__globals__[name]
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not filled yet
            continue
    yield from (("a default", value) for value in f.__defaults__ or ())
    yield from (f.__kwdefaults__ or {}).items()


def _of_class(cls: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(cls).items():
        functions = _functions_in(value)
        if functions:
            yield from (("", f) for f in functions)
        elif not name.startswith("__") and name != _OF_AN_ABC:
            yield name, value


_OF_AN_ABC = "_abc_impl"
"""What an abstract class knows of its subclasses; it is not sent."""


def _functions_in(value: Any) -> list[FunctionType]:
    """The functions behind a method, a property or another descriptor; none if it is not one."""
    if isinstance(value, property):
        held = [value.fget, value.fset, value.fdel]
    elif isinstance(value, (classmethod, staticmethod)):
        held = [value.__func__]
    elif isinstance(value, cached_property):
        held = [value.func]
    else:
        held = [value]
    return [f for f in held if isinstance(f, FunctionType)]


def global_names(code: CodeType) -> Iterator[str]:
    """The globals and built-ins that code reads; attribute names are not included."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from global_names(constant)


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{n}]", item) for n, item in enumerate(value))
    elif not isinstance(value, (WeakKeyDictionary, WeakValueDictionary, WeakSet)):
        yield from list(getattr(value, "__dict__", {}).items())
        if _is_sent_by_value(type(value)):
            yield "", type(value)
